"""Asking bhist for jobs that bjobs has forgotten or does not explain, and reading its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl

from .commands import lsf
from .histories import histories, observation

# bhist of LSF 10.1, -n: all event logs. Otherwise it looks into the newest alone, which begins anew after
# 1000 jobs or so (MAX_JOB_NUM).
_EVERYWHERE = ("-n", "0")
# Its code is not 0 then, and some versions print it to standard output.
_UNKNOWN_JOB = re.compile(r"^No matching job found|: Illegal job ID|^Job <.+> is not found", re.MULTILINE)
# In timeouts of other commands
_PATIENCE = 10


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command:
    """The command that asks the event logs, all of which may take minutes to read."""
    command = lsf("bhist", *_EVERYWHERE, "-l", *native_ids)
    return attrs.evolve(command, timeout=_PATIENCE * site.config.command_timeout)


@hookimpl
def parse_finished(result: CommandResult, site: Site) -> Mapping[str, Observation]:
    """What bhist said about each job; of a job that was put back, its last run."""
    # some may be unknown, and others not
    said = [line for line in result.stderr.splitlines() if line]
    is_only_that = all(map(_UNKNOWN_JOB.search, said or [result.stdout]))
    is_unknown = result.returncode > 0 and is_only_that
    found = histories(result.stdout if is_unknown else result.checked().stdout)
    if not found and not is_unknown:
        raise result.no_answer
    is_modern = site.offers.get("json") is True
    return {history.name: observation(history, done_is_zero=is_modern) for history in found}
