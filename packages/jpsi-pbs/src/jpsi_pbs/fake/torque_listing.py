"""`qstat` of the fake of Torque, and the rules and messages of its other commands.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    Arguments,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    node_name,
    parse_letters,
)

from .arrays import array_job, elements_of, group_by_array, run_count, used_resources
from .native_ids import exec_host, full_id, server_of
from .submit import (
    LIMITED,
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
from .table import queue_paragraphs, torque_table

_RESOURCES = frozenset({"nodes", "walltime", "mem", "pmem", "ncpus", "cput", "procs"})
_CORES_PER_NODE = 64
_UNKNOWN, _UNKNOWN_QUEUE = 153, 172
_ILLEGAL = "submit error (Illegal attribute or resource value for Resource_List.{})"
# Not by xml.sax, which imports the modules of HTTP and TLS.
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


def _check_resources(resources: Mapping[str, str]) -> None:
    for name in resources:
        if name not in _RESOURCES:
            raise refusal(189, f"submit error (Unknown resource type  Resource_List.{name})")
    if parse_seconds(resources.get("walltime", "0")) is None:
        raise refusal(168, _ILLEGAL.format("walltime"))
    try:
        is_too_large = any(cores > _CORES_PER_NODE for _, cores in _parts(resources))
    except NamedNodeError as e:
        raise refusal(1, "submit error (this fake Torque has no nodes by name)") from e
    except ValueError as e:
        name = "nodes" if "nodes" in resources else "procs"
        raise refusal(168, _ILLEGAL.format(name)) from e
    if is_too_large:
        why = "Job exceeds queue resource limits MSG=cannot locate feasible nodes"
        raise refusal(190, f"submit error ({why})")


def _parts(resources: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Yield the requested numbers of nodes, each with the number of cores per node."""
    if "procs" in resources and "nodes" not in resources:
        # Torque places procs on any free cores
        full, rest = divmod(parse_positive(resources["procs"]), _CORES_PER_NODE)
        yield from (
            (number, cores) for number, cores in ((full, _CORES_PER_NODE), (1, rest)) if number * cores
        )
        return
    yield from parse_nodes(resources.get("nodes", "1"))


def _nodes(resources: Mapping[str, str]) -> list[str]:
    """Return the node of each core."""
    counts = [cores for number, cores in _parts(resources) for _ in range(number)]
    return [node_name(index) for index, count in enumerate(counts) for _ in range(count)]


def _node_variables(nodes: Sequence[str]) -> dict[str, str]:
    """Return Torque's variables about a job's nodes, other than the node file."""
    return {
        "PBS_NP": str(len(nodes)),
        "PBS_NUM_NODES": str(len(set(nodes))),
        "PBS_NUM_PPN": str(nodes.count(nodes[0])),
        "PBS_VNODENUM": "0",
    }


RULES = Rules(
    letters="a:A:b:c:C:d:D:e:EF:fhIj:J:k:K:l:L:m:M:nN:o:p:P:q:r:S:t:T:u:v:Vw:W:Xxz",
    queues=("batch", "debug"),
    unknown_queue=(_UNKNOWN_QUEUE, "submit error (Unknown queue MSG=requested queue not found)"),
    check_resources=_check_resources,
    nodes=_nodes,
    array="t",
    min_elements=1,
    variables=lambda native_id, _array, index: {"PBS_JOBID": native_id, "PBS_ARRAYID": str(index)},
    unknown_dependency=(208, "submit error (Invalid Job Dependency)"),
    node_variables=_node_variables,
    refuses_other_servers=False,
    unknown={"qdel": "nonexistent job id: {}", "qhold": "", "qrls": ""},
    finished=(170, "Request invalid for state of job MSG=invalid state for job - COMPLETE {}"),
)


def qstat(rules: Rules, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult | str:
    """List jobs as XML or as a table for people, or print the server's or the queues' attributes."""
    if invocation.arguments == ("--version",):
        return "Version: 6.1.3.h5\nCommit: 4decc716\n"
    arguments = parse_letters(invocation.argv, "aeEinqrR1cfGlmMpstu:xQBW:")
    if "B" in arguments.values:
        settings = f"    default_queue = batch\n    max_job_array_size = {MAX_ARRAY_SIZE}\n"
        return f"Server: {rules.server}\n    server_state = Active\n{settings}\n"
    if "Q" in arguments.values:
        return queue_paragraphs(rules.queues, "Complete")
    listed, code, messages = _select_jobs(rules.server, scheduler, arguments)
    if "x" not in arguments.values:
        return CommandResult(returncode=code, stdout=torque_table(listed, _word), stderr=messages)
    text = f'<?xml version="1.0"?>\n<Data>{"".join(map(_job, listed))}</Data>\n' if listed else ""
    return CommandResult(returncode=code, stdout=text, stderr=messages)


def _select_jobs(
    server: str, scheduler: FakeScheduler, arguments: Arguments
) -> tuple[list[FakeJob], int, str]:
    """Return the jobs to list, the exit code, and the messages about unknown ids."""
    listed = scheduler.listed()
    known = {job.native_id: job for job in listed}
    arrays = {array: array_job(array, elements) for array, elements in group_by_array(listed).items()}
    by_element = "t" in arguments.values
    all_jobs = [job for job in listed if by_element or not job.array]
    if not by_element:
        all_jobs += arrays.values()
    listed, code, messages = ([], 0, "") if arguments.words else (all_jobs, 0, "")
    for word in arguments.words:
        native_id = full_id(word, server)
        if native_id in known:
            listed.append(known[native_id])
        elif native_id in arrays:
            listed += elements_of(arrays[native_id]) if by_element else [arrays[native_id]]
        elif native_id is None:
            code, messages = _UNKNOWN_QUEUE, f"{messages}qstat: Unknown queue destination {word}\n"
        else:
            code, messages = _UNKNOWN, f"{messages}qstat: Unknown Job Id Error {native_id}\n"
    return listed, code, messages


def _job(job: FakeJob) -> str:
    runs = run_count(job)
    attributes = {
        "Job_Id": job.native_id,
        "Job_Name": job.name,
        "Job_Owner": f"{job.owner}@{server_of(job)}",
        "resources_used": used_resources(job),
        "job_state": _word(job),
        "queue": job.queue,
        "Account_Name": job.project or None,
        "depend": job.attributes["depend"] or None,
        "ctime": str(int(job.submitted)),
        "exec_host": exec_host(job.attributes["nodes"]) if job.started is not None else None,
        "Hold_Types": _hold(job),
        "qtime": str(int(job.submitted)),
        "Variable_List": _variables(job),
        "comment": _comment(job),
        "exit_status": _exit_status(job),
        "start_time": None if job.started is None else str(int(job.started)),
        "start_count": str(runs) if runs else None,
        "job_array_id": str(job.index) if job.array else None,
        "comp_time": None if job.ended is None else str(int(job.ended)),
    }
    return _element("Job", attributes)


def _element(name: str, value: str | Mapping[str, str | Mapping[str, str] | None]) -> str:
    if isinstance(value, str):
        return f"<{name}>{_text(value)}</{name}>"
    inner = "".join(_element(key, it) for key, it in value.items() if it is not None)
    return f"<{name}>{inner}</{name}>"


def _text(value: str) -> str:
    return value.translate(_ENTITIES)


def _variables(job: FakeJob) -> str:
    text = ",".join(f"{name}={value}" for name, value in variables_of(job).items())
    return text.replace("\n", ",")


def _word(job: FakeJob) -> str:
    if job.state.final:
        return "C"
    if job.state is FakeState.RUNNING:
        return "R"
    return "H" if job.state is FakeState.HELD or job.why in {WAITS, LIMITED} else "Q"


def _hold(job: FakeJob) -> str:
    if job.state is FakeState.HELD:
        return "u"
    # src/lib/Libattr/attr_fn_hold.c of Torque 6.1.3: it has no letter for the hold of an array's limit
    return {WAITS: "s", LIMITED: ""}.get(job.why, "n")


def _comment(job: FakeJob) -> str | None:
    if job.state.final and job.why.startswith(NEVER):
        return f"Job deleted as result of dependency on job {job.why.removeprefix(NEVER)}"
    if job.state is FakeState.PENDING and job.why == "resources":
        return "Not Running: Not enough of the right type of nodes are available\n"
    return None


_CODES = {
    FakeState.CANCELLED: "271",
    FakeState.TIMEOUT: "-11",
    FakeState.NODE_FAIL: "-4",
    FakeState.OUT_OF_MEMORY: "-10",
}


def _exit_status(job: FakeJob) -> str | None:
    if not job.state.final or (job.started is None and not job.why.startswith(NEVER)):
        return None
    return _CODES.get(job.state, str(job.shell_code))
