"""Queries bhist for jobs that bjobs has forgotten or does not explain, and parses its output.

bhist silently leaves out unknown jobs if it knows any other of the queried jobs. A job therefore counts as
missing only if the end of the output has arrived.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl

from ..commands import lsf
from .long_listing import observe_history, parse_bhist

# bhist of LSF 10.1, -n: all event logs. By default bhist reads only the newest, and LSF starts a new one
# after 1000 jobs or so (MAX_JOB_NUM).
_EVERYWHERE = ("-n", "0")
# bhist's messages if it knows none of the jobs; the exit code is not 0, and some versions print to stdout.
_UNKNOWN_JOB = re.compile(r"^(?:No matching job found|.+: Illegal job ID\.?|Job <.+> is not found)$")
# The timeout of bhist, as a multiple of that of other commands
_PATIENCE = 10


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command:
    """Return the bhist command for these jobs; it reads all event logs, which may take minutes."""
    command = lsf("bhist", *_EVERYWHERE, "-l", *native_ids)
    return attrs.evolve(command, timeout=_PATIENCE * site.config.command_timeout)


@hookimpl
def parse_finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, Observation]:
    """Return an Observation of each job in bhist's output; of a requeued job, that of its last run.

    Jobs that have not ended are included.
    """
    told = parse_bhist(result.stdout)
    complaints = [line for line in result.stderr.splitlines() if line]
    if told is None:
        # if bhist knows none of the jobs, it prints a single line
        said = [*complaints, *(line for line in result.stdout.splitlines() if line)]
        if result.returncode <= 0 or not said or not all(map(_UNKNOWN_JOB.match, said)):
            raise result.checked().no_answer
        return {it: Observation.denied(said[0]) for it in native_ids}
    # some jobs may be unknown, and others not
    if result.returncode <= 0 or not complaints or not all(map(_UNKNOWN_JOB.match, complaints)):
        result.checked()
    is_modern = site.offers.get("json") is True
    found = {history.name: observe_history(history, done_is_zero=is_modern) for history in told.jobs}
    if not told.is_ended and not found.keys() >= set(native_ids):
        raise result.no_answer
    return found
