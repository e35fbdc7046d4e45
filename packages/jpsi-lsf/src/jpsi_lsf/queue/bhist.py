"""Queries bhist for jobs that bjobs has forgotten or does not explain, and parses its output.

bhist silently leaves out unknown jobs if it knows any other of the queried jobs. A job therefore counts as
missing only if the end of the output has arrived, or if it was queried alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl

from ..commands import lsf_command
from ..native_ids import is_lone_element
from .long_listing import observe_history, parse_bhist

# bhist of LSF 10.1, -n: all event logs. By default bhist reads only the newest, and LSF starts a new one
# after 1000 jobs or so (MAX_JOB_NUM).
_ALL_EVENT_LOGS = ("-n", "0")
# bhist's messages if it knows none of the jobs; the exit code is not 0, and some versions print to stdout.
_UNKNOWN_JOB = re.compile(r"^(?:No matching job found|.+: Illegal job ID\.?|Job <.+> is not found)$")
# The timeout of bhist, as a multiple of that of other commands
_TIMEOUT_FACTOR = 10


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command:
    """Return the bhist command for these jobs; it reads all event logs, which may take minutes."""
    command = lsf_command("bhist", *_ALL_EVENT_LOGS, "-l", *native_ids)
    return attrs.evolve(command, timeout=_TIMEOUT_FACTOR * site.config.command_timeout)


@hookimpl
def parse_finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, Observation]:
    """Return an Observation of each job in bhist's output; of a requeued job, that of its last run.

    Jobs that have not ended are included.
    """
    histories = parse_bhist(result.stdout)
    errors = [line for line in result.stderr.splitlines() if line]
    if histories is None:
        # if bhist knows none of the jobs, it prints a single line
        messages = [*errors, *(line for line in result.stdout.splitlines() if line)]
        if result.returncode <= 0 or not messages or not all(map(_UNKNOWN_JOB.match, messages)):
            raise result.checked().no_answer
        return {native_id: Observation.denied(messages[0]) for native_id in native_ids}
    # some jobs may be unknown, and others not
    if result.returncode <= 0 or not errors or not all(map(_UNKNOWN_JOB.match, errors)):
        result.checked()
    is_lsf_10 = site.offers.get("json") is True
    observations = {it.name: observe_history(it, done_is_zero=is_lsf_10) for it in histories.parts}
    is_whole = histories.is_ended and not is_lone_element(native_ids)
    if not is_whole and not observations.keys() >= set(native_ids):
        raise result.no_answer
    return observations
