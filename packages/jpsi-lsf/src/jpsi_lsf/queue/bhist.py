"""Asking bhist for jobs that bjobs has forgotten or does not explain, and reading its answers.

Of jobs that it does not know bhist says nothing, if it knows another of those that it was asked about. So a
job is missing only in an answer whose end is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl

from ..commands import lsf
from .long_listing import observe_history, parse_bhist

# bhist of LSF 10.1, -n: all event logs. Otherwise it looks into the newest alone, which begins anew after
# 1000 jobs or so (MAX_JOB_NUM).
_EVERYWHERE = ("-n", "0")
# Its code is not 0 then, and some versions print it to standard output.
_UNKNOWN_JOB = re.compile(r"^(?:No matching job found|.+: Illegal job ID\.?|Job <.+> is not found)$")
# In timeouts of other commands
_PATIENCE = 10


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command:
    """The command that asks the event logs, all of which may take minutes to read."""
    command = lsf("bhist", *_EVERYWHERE, "-l", *native_ids)
    return attrs.evolve(command, timeout=_PATIENCE * site.config.command_timeout)


@hookimpl
def parse_finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, Observation]:
    """What bhist said about each job; of a job that was put back, its last run.

    One that has not ended is told of as such.
    """
    told = parse_bhist(result.stdout)
    complaints = [line for line in result.stderr.splitlines() if line]
    if told is None:
        # one line is all that is said of jobs none of which is known
        said = [*complaints, *(line for line in result.stdout.splitlines() if line)]
        if result.returncode <= 0 or not said or not all(map(_UNKNOWN_JOB.match, said)):
            raise result.checked().no_answer
        return {it: Observation.denied(said[0]) for it in native_ids}
    # some may be unknown, and others not
    if result.returncode <= 0 or not complaints or not all(map(_UNKNOWN_JOB.match, complaints)):
        result.checked()
    is_modern = site.offers.get("json") is True
    found = {history.name: observe_history(history, done_is_zero=is_modern) for history in told.jobs}
    if not told.is_ended and not found.keys() >= set(native_ids):
        raise result.no_answer
    return found
