"""Parses the output of the commands by which the executor `local` runs jobs on a remote host.

The hooks of `local` use it; see `remote_process_commands`. Output that was cut short is an error, so that no
job counts as ended because a list was incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import CommandResult, Failure, FailureKind, JobState, Meaning, Observation, Reason
from jpsi.plugin.kit import IdForm, require_one_id

# PID.START.BOOT.MACHINE; on Linux a start is in clock ticks since boot, on others like Nov21-09:00:42-2026.
_ID = r"(?P<pid>[1-9][0-9]*)\.(?P<start>[A-Za-z0-9:-]+)\.(?P<boot>[0-9a-f]+)\.(?P<node>[A-Za-z0-9._-]+)"
#: The form of native ids.
IDS = IdForm("the executor local on another machine", _ID)

_STARTED = re.compile(r"^started (\S+)$", re.MULTILINE)
_HOST = re.compile(r"here (\S+) ([0-9a-f]+)")
_PROCESS = re.compile(r"process ([0-9]+) (\S+) ([A-Za-z0-9:-]+)( .*)?")
_ENDED = re.compile(r"ended (\w+) (\S+)")
_REFUSED = re.compile(r"refused (\S+) (.+)")
_LEADER = re.compile(r".*sh -s (jpsi-[A-Za-z0-9-]+) *")
_END = "end"

# The reasons for which a leader ends its job.
_ENDS = {
    "cancel": Meaning(JobState.CANCELED, Reason.CANCELLED),
    "timeout": Meaning(JobState.FAILED, Reason.TIMEOUT, "the job used up its duration and was ended"),
}
# proc(5), ps(1): the first letters of the states of dead processes.
_DEAD = ("Z", "X")
_NO_GROUP = 3


@attrs.frozen(slots=True)
class _ProcessList:
    """The parsed output of `query` or `listing`."""

    node: str
    #: The states of the processes that exist, by native id.
    states: Mapping[str, str]
    #: The native ids of leaders, by their tags.
    tags: Mapping[str, str]
    #: The reasons for which leaders ended their jobs, by native id.
    ends: Mapping[str, str]


def parse_started(result: CommandResult) -> str:
    """Return the native id of a job that was started.

    Raises:
        ValueError: the output does not contain it.
    """
    return require_one_id(filter(IDS.is_id, _STARTED.findall(result.stdout)), result.stdout)


def parse_failure(result: CommandResult) -> Failure | None:
    """Return the failure if a job was certainly not started; None if it may have been."""
    if result.returncode != _NO_GROUP:
        return None
    return Failure(FailureKind.PERMANENT, result.complaint)


def parse_observations(result: CommandResult, native_ids: Sequence[str] | None) -> dict[str, Observation]:
    """Return observations of jobs, or, for None, of all that run; jobs that are gone are left out.

    Raises:
        SubmitException: the output is incomplete.
    """
    seen = _parse_output(result)
    names = seen.tags.values() if native_ids is None else native_ids
    parsed = ((native_id, _observation(native_id, seen)) for native_id in names)
    return {native_id: it for native_id, it in parsed if it is not None}


def parse_found(result: CommandResult, tags: Sequence[str]) -> dict[str, str]:
    """Return the native ids of the jobs that run with these tags.

    Raises:
        SubmitException: the output is incomplete.
    """
    known = _parse_output(result).tags
    return {tag: known[tag] for tag in tags if tag in known}


def parse_refused(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Return, by native id, the reasons why jobs were not signalled to end."""
    lines = result.stdout.splitlines()
    if result.returncode != 0 or result.timed_out or _END not in lines:
        return dict.fromkeys(native_ids, result.complaint)
    parsed = (match.groups() for line in lines if (match := _REFUSED.fullmatch(line)))
    return {native_id: why for native_id, why in parsed if native_id in native_ids}


def _observation(native_id: str, seen: _ProcessList) -> Observation | None:
    state = seen.states.get(native_id)
    if state is not None:
        return Observation(state=JobState.ACTIVE, native_state=state, nodes=(seen.node,))
    end = seen.ends.get(native_id)
    if end in _ENDS:
        meaning, reason, message = _ENDS[end]
        return Observation(state=meaning, native_state=end, reason=reason, message=message, ran=True)
    parts = IDS.pattern.fullmatch(native_id)
    if parts is not None and parts["node"] != seen.node:
        # a host name may lead to one of several machines: this one knows nothing of the job
        return Observation(state=None, native_state=f"on {parts['node']}, but {seen.node} was queried")
    return None


def _parse_output(result: CommandResult) -> _ProcessList:
    lines = result.checked().stdout.splitlines()
    host = next((match for line in lines if (match := _HOST.fullmatch(line))), None)
    if host is None or _END not in lines:
        raise result.no_answer
    node, boot = host.groups()
    states, tags = dict[str, str](), dict[str, str]()
    for match in filter(None, map(_PROCESS.fullmatch, lines)):
        pid, state, start, command = match.groups()
        if state.startswith(_DEAD):
            continue
        native_id = f"{pid}.{start}.{boot}.{node}"
        states[native_id] = state
        leader = _LEADER.fullmatch(command or "")
        if leader is not None:
            tags[leader[1]] = native_id
    ends = {match[2]: match[1] for line in lines if (match := _ENDED.fullmatch(line))}
    return _ProcessList(node, states, tags, ends)
