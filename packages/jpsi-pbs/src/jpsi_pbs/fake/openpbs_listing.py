"""`qstat` of the fake of OpenPBS, and the rules and messages of its other commands.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from jpsi.plugin import CommandResult
from jpsi.plugin.kit import write_indices
from jpsi_testing.fake import (
    Arguments,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    node_name,
    parse_letters,
)

from .arrays import (
    array_entry,
    array_job,
    elements_of,
    expand_ids,
    group_by_array,
    is_array_entry,
    listed_state,
    run_count,
    used_resources,
    with_listed_state,
)
from .native_ids import exec_host, full_id, is_local, server_of
from .submit import (
    MAX_ARRAY_SIZE,
    NEVER,
    WAITS,
    NamedNodeError,
    Rules,
    parse_nodes,
    parse_positive,
    parse_seconds,
    refusal,
    variables_of,
)
from .table import job_paragraphs, openpbs_table, queue_paragraphs

_VERSION = "23.06.06"
_CHUNK = frozenset({"ncpus", "mpiprocs", "ompthreads", "mem", "host"})
_RESOURCES = frozenset({"select", "place", "walltime", "ncpus", "mem", "cput", "nodes"})
_ALWAYS_TEXT = frozenset({"Job_Name", "Account_Name", "project"})
_TIME = "%a %b %e %H:%M:%S %Y"
_FINISHED, _UNKNOWN, _BAD_ID, _UNKNOWN_QUEUE = 35, 153, 1, 170


def _check_resources(resources: Mapping[str, str]) -> None:
    for name in resources:
        if name not in _RESOURCES:
            raise refusal(187, f"Unknown resource Resource_List.{name}")
    if parse_seconds(resources.get("walltime", "0")) is None:
        raise refusal(166, "Illegal attribute or resource value Resource_List.walltime")
    if "place" in resources and "select" not in resources:
        raise refusal(7, 'Cannot have "place" without "select"')
    _check_chunks(resources)


def _check_chunks(resources: Mapping[str, str]) -> None:
    name = "select" if "select" in resources else "nodes"
    try:
        chunks = _chunks(resources)
        for number, parts in chunks:
            for count in (number, parts.get("ncpus") or "1", parts.get("mpiprocs") or "1"):
                parse_positive(count)
    except NamedNodeError as e:
        raise refusal(1, "this fake PBS has no nodes by name") from e
    except ValueError as e:
        raise refusal(166, f"Illegal attribute or resource value Resource_List.{name}") from e
    unknown = next((it for _, parts in chunks for it in parts if it not in _CHUNK), None)
    if unknown is not None:
        raise refusal(187, f"Unknown resource: {unknown}")


def _has_nodes_only(resources: Mapping[str, str]) -> bool:
    """Return True if a job requests `nodes`, the form that `select` has replaced."""
    return "nodes" in resources and "select" not in resources


def _chunks(resources: Mapping[str, str]) -> list[tuple[str, dict[str, str]]]:
    if _has_nodes_only(resources):
        # pbs_resources(7B): each node of the old form becomes a chunk
        chunks = parse_nodes(resources["nodes"])
        return [(str(number), {"ncpus": str(it), "mpiprocs": str(it)}) for number, it in chunks]
    split = [chunk.split(":") for chunk in resources.get("select", "1").split("+")]
    return [(number, dict(part.partition("=")[::2] for part in parts)) for number, *parts in split]


def _nodes(resources: Mapping[str, str]) -> list[str]:
    """Return the node of each process; all chunks are on one node unless `place` is scatter."""
    chunks = [
        int(parts.get("mpiprocs") or "1") for number, parts in _chunks(resources) for _ in range(int(number))
    ]
    is_scattered = _has_nodes_only(resources) or "scatter" in resources.get("place", "").split(":")
    return [
        node_name(index if is_scattered else 0) for index, count in enumerate(chunks) for _ in range(count)
    ]


RULES = Rules(
    letters="a:A:c:C:e:fhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz",
    queues=("workq", "debug"),
    unknown_queue=(_UNKNOWN_QUEUE, "Unknown queue"),
    check_resources=_check_resources,
    nodes=_nodes,
    array="J",
    min_elements=2,
    variables=lambda native_id, array, index: {
        "PBS_JOBID": native_id,
        "PBS_ARRAY_ID": array,
        "PBS_ARRAY_INDEX": str(index),
    },
    unknown_dependency=None,
    refuses_other_servers=True,
    unknown=dict.fromkeys(("qdel", "qhold", "qrls"), "Unknown Job Id {}"),
    finished=(_FINISHED, "Job has finished {}"),
    ended_element=(55, "Request invalid for finished array subjob {}"),
    held_element=(156, "Invalid request {}"),
    forgets_finished=True,
)


def qstat(rules: Rules, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult | str:
    """List jobs as JSON or as a table for people, or print the server's or the queues' attributes."""
    if invocation.arguments == ("--version",):
        return f"pbs_version = {_VERSION}\n"
    arguments = parse_letters(invocation.argv, "aeinpqrstwxu:fGHJMQEBW:T1F:D:")
    if "B" in arguments.values:
        settings = f"    job_history_enable = {scheduler.accounting}\n    max_array_size = {MAX_ARRAY_SIZE}\n"
        settings += f"    pbs_version = {_VERSION}\n"
        settings = f"    default_queue = {rules.queues[0]}\n{settings}"
        return f"Server: {rules.server}\n    server_state = Active\n{settings}\n"
    if "Q" in arguments.values:
        return queue_paragraphs(rules.queues, "Begun")
    known = _known_jobs(scheduler, history="x" in arguments.values)
    listed, code, messages = _select_jobs(rules.server, scheduler, arguments, known)
    if "f" not in arguments.values:
        return CommandResult(
            returncode=code, stdout=openpbs_table(listed, lambda it: _state(it)[0]), stderr=messages
        )
    jobs = {job.native_id: _job_attributes(job, invocation) for job in listed}
    is_json = arguments.last("F") == "json"
    text = json_document(rules.server, scheduler.clock(), jobs) if is_json else job_paragraphs(jobs)
    return CommandResult(returncode=code, stdout=text, stderr=messages)


def _known_jobs(scheduler: FakeScheduler, *, history: bool) -> dict[str, FakeJob]:
    """Return the entries that qstat can list, by id: jobs, arrays and array elements."""
    live = [job for job in scheduler.listed() if not job.state.final]
    ended = [job for job in scheduler.accounted() if job.state.final]
    kept = {job.native_id for job in ended}
    found = {job.native_id: job for job in (*live, *(ended if history else ())) if not job.array}
    for array, elements in group_by_array(dict.fromkeys((*scheduler.listed(), *ended))).items():
        as_job = array_job(array, sorted(elements, key=lambda it: it.index))
        if not as_job.state.final or (history and scheduler.accounting):
            found[array] = as_job
            entries = (_element(it, as_job, is_kept=it.native_id in kept) for it in elements_of(as_job))
            found.update((it.native_id, it) for it in entries)
    return found


def _element(job: FakeJob, array: FakeJob, *, is_kept: bool) -> FakeJob:
    """Return the entry of an element, with own attributes only if it started and is not forgotten."""
    if job.state.final and (job.started is None or not is_kept):
        return array_entry(job, array, "F" if array.state.final else "X")
    if not job.state.final and not run_count(job):
        return array_entry(job, array, "Q")
    return with_listed_state(job, "X") if job.state.final and not array.state.final else job


def _select_jobs(
    server: str, scheduler: FakeScheduler, arguments: Arguments, known: Mapping[str, FakeJob]
) -> tuple[Iterable[FakeJob], int, str]:
    """Return the listed jobs, the exit code and the error messages."""
    history = "x" in arguments.values
    if history and not scheduler.accounting:
        lines = [
            f"qstat: PBS is not configured to maintain job history {full_id(word, server) or word}\n"
            for word in arguments.words or [""]
        ]
        return [], 0, "".join(lines)
    has_elements = "t" in arguments.values
    if not arguments.words:
        return [job for name, job in known.items() if has_elements or not _is_element(name)], 0, ""
    is_one_request = "E" in arguments.values
    words = sorted(arguments.words, key=_number) if is_one_request else arguments.words
    found = {word: _find_jobs(server, word, known, has_elements=has_elements) for word in words}
    listed = [job for word in words for job in found[word]]
    refusals = [_refusal(server, scheduler, word) for word in words if not found[word]]
    if is_one_request:
        # if any job is known there are no errors, otherwise one about the last id
        is_known = listed and all(code != _BAD_ID for code, _ in refusals)
        listed, refusals = (listed, []) if is_known else ([], refusals[-1:])
    code = refusals[-1][0] if refusals else 0
    return listed, code, "".join(f"qstat: {text}\n" for _, text in refusals)


def _find_jobs(server: str, word: str, known: Mapping[str, FakeJob], *, has_elements: bool) -> list[FakeJob]:
    native_id = full_id(word, server) or ""
    names = expand_ids(native_id) if is_local(native_id, server) else ()
    found = [known[name] for name in names if name in known]
    elements = [known[it.native_id] for job in found for it in elements_of(job)] if has_elements else []
    return [*found, *elements]


def _refusal(server: str, scheduler: FakeScheduler, word: str) -> tuple[int, str]:
    """Return the exit code and the message about a word that stands for no job in the listing."""
    native_id = full_id(word, server)
    if native_id is None:
        return _UNKNOWN_QUEUE, f"Unknown queue destination {word}"
    if not is_local(native_id, server):
        return _BAD_ID, f"illegally formed job identifier: {word}"
    if native_id in _known_jobs(scheduler, history=True):
        hint = "Job has finished, use -x or -H to obtain historical job information"
        return _FINISHED, f"{native_id} {hint}"
    return _UNKNOWN, f"Unknown Job Id {native_id}"


def _number(word: str) -> int:
    digits = re.match("[0-9]+", word)
    return int(digits[0]) if digits else -1


def _is_element(native_id: str) -> bool:
    return "[" in native_id and "[]" not in native_id


def json_document(server: str, now: float, jobs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return qstat's JSON output for jobs; without jobs it lacks the key `Jobs`."""
    content = {
        "timestamp": int(now),
        "pbs_version": _VERSION,
        "pbs_server": server,
        **({"Jobs": jobs} if jobs else {}),
    }
    return json.dumps(content, indent="\t", separators=(",", ":\t"), ensure_ascii=False) + "\n"


def _job_attributes(job: FakeJob, invocation: Invocation) -> dict[str, Any]:
    state, substate = _state(job)
    runs = run_count(job)
    times = {
        "ctime": job.submitted,
        "qtime": job.submitted,
        "stime": job.started,
        "obittime": job.ended,
        "mtime": job.ended,
    }
    texts = {
        "Job_Name": job.name,
        "Job_Owner": f"{job.owner}@{server_of(job)}",
        "resources_used": used_resources(job),
        "job_state": state,
        "queue": job.queue,
        "server": server_of(job),
        "depend": job.attributes["depend"] or None,
        "exec_host": (job.started and exec_host(job.attributes["nodes"])) or None,
        "Account_Name": job.project or None,
        "Hold_Types": _hold(job),
        **{
            name: invocation.local_time(timestamp).strftime(_TIME)
            for name, timestamp in times.items()
            if timestamp is not None
        },
        "substate": substate,
        "Variable_List": variables_of(job),
        "comment": _comment(job),
        "run_count": str(runs) if runs else None,
        "Exit_status": _exit_status(job),
        "array_id": job.array or None,
        "array_index": str(job.index) if job.array else None,
        **_array_attributes(job),
        "project": "_pbs_project_default",
    }
    return {name: _json_value(name, value) for name, value in texts.items() if value is not None}


def _array_attributes(job: FakeJob) -> dict[str, str]:
    """Return the additional attributes of a whole array, and of elements listed with their array's."""
    entries = {"Exit_status": str(job.exit_code), "comment": "Job Array Began at Sat Nov 21 at 09:03"}
    if is_array_entry(job):
        return entries if job.started is not None else {}
    elements = elements_of(job)
    if not elements:
        return {}
    waiting = [it for it in elements if not it.state.final and it.state is not FakeState.RUNNING]
    return {
        **(entries if job.started is not None else {}),
        "array": "True",
        "array_indices_submitted": write_indices(it.index for it in elements),
        "array_indices_remaining": write_indices(it.index for it in waiting) or "-",
    }


def _json_value(name: str, value: Any) -> Any:  # noqa: ANN401  as the printer does: what looks like JSON becomes JSON
    if isinstance(value, dict):
        return {key: _json_value(key, it) for key, it in value.items()}
    try:
        return value if name in _ALWAYS_TEXT else json.loads(value)
    except ValueError:
        return value


def _state(job: FakeJob) -> tuple[str, str]:
    state, substate = _own_state(job)
    return listed_state(job) or state, substate


def _own_state(job: FakeJob) -> tuple[str, str]:
    if elements_of(job) and job.state is FakeState.RUNNING:
        return "B", "70"
    if job.state.final:
        is_deleted = job.state is FakeState.CANCELLED and not job.why.startswith(NEVER)
        is_success = job.state is FakeState.COMPLETED or job.why.startswith(NEVER)
        return "F", "91" if is_deleted else "92" if is_success else "93"
    if job.state is FakeState.PENDING:
        return ("H", "22") if job.why == WAITS else ("Q", "10")
    return ("H", "20") if job.state is FakeState.HELD else ("R", "42")


def _hold(job: FakeJob) -> str:
    if job.state is FakeState.HELD:
        return "u"
    return "s" if job.why == WAITS or job.why.startswith(NEVER) else "n"


def _comment(job: FakeJob) -> str | None:
    if job.state is FakeState.PENDING and job.why == "resources":
        return "Not Running: Not enough free nodes available"
    if job.state is FakeState.TIMEOUT:
        return f"Job run on ({server_of(job)}:ncpus=1) and exceeded resource walltime"
    return None


_CODES = {
    FakeState.CANCELLED: "271",
    FakeState.TIMEOUT: "-29",
    FakeState.NODE_FAIL: "-4",
    FakeState.OUT_OF_MEMORY: "-27",
}


def _exit_status(job: FakeJob) -> str | None:
    if not job.state.final or job.started is None:
        return None
    if job.failed_to_start:
        return "-1"
    # the shell that PBS starts reports a signal that ended the script as 128 + n
    return _CODES.get(job.state, str(job.shell_code))
