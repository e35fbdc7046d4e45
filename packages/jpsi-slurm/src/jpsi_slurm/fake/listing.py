"""`squeue` and `sacct` of the fake of Slurm.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jpsi_testing.fake import (
    Arguments,
    CommandError,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    OptionTable,
    join_lines,
    refuse_if,
)

from ..native_ids import parent_id
from .arrays import check_ids, find_jobs, queue_lines
from .nodes import CLUSTER
from .states import (
    SHORT_STATES,
    Line,
    elapsed_seconds,
    format_clock,
    format_elapsed,
    format_left,
    format_limit,
    format_time,
)

_SQUEUE = OptionTable(
    flags="all|a array|r hide long|l me noheader|h verbose|v",
    valued="Format|O account|A clusters|M format|o jobs|j name|n partition|p qos|q sort|S states|t user|u",
    unknown=(1, "squeue: unrecognized option '{}'\n"),
    abbreviates=True,
)
_SACCT = OptionTable(
    flags=(
        "allclusters|L allocations|X allusers|a brief|b duplicates|D helpformat|e long|l noheader|n "
        "parsable|p parsable2|P truncate|T"
    ),
    valued="accounts|A clusters|M delimiter endtime|E format|o jobs|j name starttime|S state|s units user|u",
    unknown=(1, "sacct: unrecognized option '{}'\n"),
    abbreviates=True,
)
# squeue(1): the default format, and the columns of its letters; a point aligns the value to the right
_DEFAULT_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_LETTER = re.compile(r"%(?P<right>\.?)(?P<width>\d*)(?P<letter>[a-zA-Z])")
_LETTERS = {
    "A": "jobid",
    "B": "batchhost",
    "C": "numcpus",
    "D": "numnodes",
    "E": "dependency",
    "F": "arrayjobid",
    "K": "arraytaskid",
    "L": "timeleft",
    "M": "timeused",
    "N": "nodelist",
    "P": "partition",
    "R": "reasonlist",
    "S": "starttime",
    "T": "state",
    "U": "userid",
    "V": "submittime",
    "Z": "workdir",
    "Q": "priority",
    "a": "account",
    "b": "tres-per-node",
    "c": "mincpus",
    "e": "endtime",
    "f": "feature",
    "i": "jobarrayid",
    "j": "name",
    "k": "comment",
    "l": "timelimit",
    "m": "minmemory",
    "o": "command",
    "n": "reqnodes",
    "p": "priority",
    "q": "qos",
    "r": "reason",
    "t": "statecompact",
    "u": "username",
    "v": "reservation",
}
# A field of --Format: a point aligns the value to the right, and the text after the width ends the field.
_FIELD = re.compile(r"(?P<name>[^:]*)(?:(?P<colon>:)(?P<right>\.?)(?P<width>\d*)(?P<end>.*))?", re.DOTALL)
_HEADINGS = {
    "allocnodes": "ALLOC_NODES",
    "arrayjobid": "ARRAY_JOB_ID",
    "arraytaskid": "ARRAY_TASK_ID",
    "batchhost": "EXEC_HOST",
    "feature": "FEATURES",
    "mincpus": "MIN_CPUS",
    "minmemory": "MIN_MEMORY",
    "timeleft": "TIME_LEFT",
    "tres-per-node": "TRES_PER_NODE",
    "userid": "UID",
    "endtime": "END_TIME",
    "jobarrayid": "JOBID",
    "numcpus": "CPUS",
    "numnodes": "NODES",
    "numtasks": "TASKS",
    "reasonlist": "NODELIST(REASON)",
    "reqnodes": "REQ_NODES",
    "restartcnt": "RESTART_COUNT",
    "starttime": "START_TIME",
    "statecompact": "ST",
    "submittime": "SUBMIT_TIME",
    "timelimit": "TIME_LIMIT",
    "timeused": "TIME",
    "username": "USER",
    "workdir": "WORK_DIR",
}
_SACCT_DEFAULT = "JobID,JobName,State,ExitCode"
# The widths of a column of --Format, and of sacct's output for people
_DEFAULT_WIDTH, _SACCT_WIDTH = "20", 12

_Columns = Mapping[str, Callable[[Line], str]]


def _queue_columns(call: Invocation, now: float) -> _Columns:
    return {
        "account": lambda line: line.job.project or "(null)",
        "allocnodes": lambda _line: platform.node(),
        "arrayjobid": lambda line: line.job.number,
        "arraytaskid": lambda line: line.displayed_id.partition("_")[2].strip("[]") or "N/A",
        "batchhost": lambda line: line.nodes or "n/a",
        "command": lambda line: line.job.attributes.get("command", "(null)"),
        "comment": lambda line: line.job.tag or "(null)",
        "dependency": lambda line: line.option("dependency"),
        "endtime": lambda line: format_time(line.job.ended, call, "N/A"),
        "exit_code": lambda line: str(line.status),
        "feature": lambda line: line.option("constraint"),
        "jobarrayid": lambda line: line.displayed_id,
        "jobid": lambda line: line.number,
        "mincpus": lambda line: line.option("cpus-per-task", "1"),
        "minmemory": lambda line: line.option("mem", "0"),
        "name": lambda line: line.job.name,
        "nodelist": lambda line: line.nodes,
        "numcpus": lambda line: str(line.cpus),
        "numtasks": lambda line: str(line.job.slots),
        "numnodes": lambda line: str(line.job.attributes.get("nodes", 1)),
        "partition": lambda line: line.job.queue,
        "priority": lambda _line: "1",
        "qos": lambda line: line.option("qos", "normal"),
        "reason": lambda line: line.reason,
        "reasonlist": lambda line: line.nodes_or_reason,
        "reqnodes": lambda line: line.option("nodelist", ""),
        "reservation": lambda line: line.option("reservation"),
        "restartcnt": lambda line: str(line.job.restarts),
        "starttime": lambda line: format_time(line.job.started, call, "N/A"),
        "state": lambda line: line.state,
        "statecompact": lambda line: SHORT_STATES[line.state],
        "submittime": lambda line: format_time(line.job.submitted, call, "N/A"),
        "stderr": lambda line: line.job.stderr or "/dev/null",
        "stdout": lambda line: line.job.stdout or "/dev/null",
        "timeleft": lambda line: format_left(line.job, now),
        "timelimit": lambda line: format_limit(line.job),
        "timeused": lambda line: format_elapsed(line.job, now),
        "tres-per-node": lambda line: line.option("gres", "N/A"),
        "userid": lambda _line: str(os.getuid()),
        "username": lambda line: line.job.owner,
        "workdir": lambda line: line.job.directory,
    }


def _account_columns(call: Invocation, now: float) -> _Columns:
    return {
        "Account": lambda line: line.job.project,
        "AllocCPUS": lambda line: str(line.cpus),
        "AllocNodes": lambda line: str(line.job.attributes.get("nodes", 1)),
        "AllocTRES": lambda line: f"cpu={line.cpus},node={line.job.attributes.get('nodes', 1)}",
        "Cluster": lambda line: line.job.attributes.get("cluster", CLUSTER),
        # slurmdbd gets the comment when the job ends
        "Comment": lambda line: line.job.tag if line.job.state.final else "",
        "CPUTimeRAW": lambda line: str(elapsed_seconds(line.job, now) * line.cpus),
        "DerivedExitCode": lambda _line: "0:0",
        "Elapsed": lambda line: format_clock(elapsed_seconds(line.job, now)),
        "ElapsedRaw": lambda line: str(elapsed_seconds(line.job, now)),
        "End": lambda line: format_time(line.job.ended, call, "Unknown"),
        "ExitCode": lambda line: line.exit_code,
        "JobID": lambda line: line.displayed_id,
        "JobIDRaw": lambda line: line.number,
        "JobName": lambda line: line.job.name,
        # the fake measures nothing
        "MaxRSS": lambda _line: "",
        "NCPUS": lambda line: str(line.cpus),
        "NNodes": lambda line: str(line.job.attributes.get("nodes", 1)),
        "NodeList": lambda line: line.nodes or "None assigned",
        "NTasks": lambda _line: "",
        "Partition": lambda line: line.job.queue,
        "QOS": lambda line: line.option("qos", "normal"),
        "Reason": lambda _line: "None",
        "ReqCPUS": lambda line: str(line.cpus),
        "ReqMem": lambda line: line.option("mem", ""),
        "ReqNodes": lambda line: str(line.job.attributes.get("nodes", 1)),
        "Start": lambda line: format_time(line.job.started, call, "Unknown"),
        "State": lambda line: line.accounted_state,
        "Submit": lambda line: format_time(line.job.submitted, call, "Unknown"),
        "SubmitLine": lambda line: line.job.attributes.get("submit_line", "sbatch job.sh"),
        "Timelimit": lambda line: format_clock(line.job.time_limit),
        "TotalCPU": lambda _line: "00:00:00",
        "UID": lambda _line: str(os.getuid()),
        "User": lambda line: line.job.owner,
        "WorkDir": lambda line: line.job.directory,
    }


def squeue(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """List jobs in the form of `--Format` or `--format`, or as a table for people."""
    parsed = _SQUEUE.parse(invocation.arguments, permutes=True)
    options = parsed.options
    jobs = scheduler.listed()
    ids = _ids(parsed)
    check_ids(ids, "squeue: error: Invalid job id: {}\n")
    if len(ids) == 1 and not any(find_jobs([parent_id(ids[0])], jobs).values()):
        raise CommandError(1, "slurm_load_jobs error: Invalid job id specified\n")
    jobs = [job for job in _select(jobs, ids) if _is_wanted(job, options)]
    columns = _queue_columns(invocation, scheduler.clock())
    lines = [Line(job, job.native_id) for job in jobs] if "array" in options else list(queue_lines(jobs))
    if options.get("sort") in {"i", "-i"}:
        lines.sort(key=_sort_key, reverse=options["sort"] == "-i")
    else:
        lines.sort(key=_usual_sort_key)
    if "Format" in options:
        template, unknown = _template_of_fields(options["Format"], columns)
    else:
        template, unknown = template_of_letters(options.get("format", _DEFAULT_FORMAT), _LETTERS)
    refuse_if({f"Invalid job format specification: {', '.join(unknown)}": unknown}, 1, "squeue: error: {}\n")
    heading = {name: _HEADINGS.get(name, name.upper()) for name in columns}
    rows = [{name: column(line) for name, column in columns.items()} for line in lines]
    return join_lines(map(template.format_map, rows if "noheader" in options else [heading, *rows]))


def _is_wanted(job: FakeJob, options: Mapping[str, str]) -> bool:
    return (
        (_is_in_state(job, options["states"]) if "states" in options else not job.state.final)
        and ("me" not in options or job.is_own)
        and is_selected(job, options)
    )


def _is_in_state(job: FakeJob, wanted: str) -> bool:
    state = Line(job, job.native_id).state
    return not {"ALL", state, SHORT_STATES[state]}.isdisjoint(wanted.upper().split(","))


def is_selected(job: FakeJob, options: Mapping[str, str]) -> bool:
    """Return True if options that select jobs by the user, the name and so on select this one."""
    facts = {
        "account": job.project,
        "accounts": job.project,
        "name": job.name,
        "partition": job.queue,
        "user": job.owner,
    }
    return all(fact in options[name].split(",") for name, fact in facts.items() if options.get(name))


def template_of_letters(form: str, names: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the template of a line in the form of `--format`, and the letters that are no columns' names."""
    unknown = {field["letter"] for field in _LETTER.finditer(form)} - names.keys()
    template = _LETTER.sub(lambda field: _cell(names.get(field["letter"], ""), field), _escape(form))
    return template, sorted(unknown)


def _template_of_fields(form: str, columns: _Columns) -> tuple[str, list[str]]:
    """Return the template of a line in the form of `--Format`, and the unknown names."""
    fields = [match for field in form.split(",") if (match := _FIELD.fullmatch(field))]
    cells = [_cell(field["name"].lower(), field) + _escape(field["end"] or "") for field in fields]
    return "".join(cells), [field["name"] for field in fields if field["name"].lower() not in columns]


def _cell(name: str, field: re.Match[str]) -> str:
    width = _DEFAULT_WIDTH if field.groupdict().get("colon", ":") is None else field["width"]
    return f"{{{name}:{'>' if field['right'] else '<'}{width}.{width}}}" if width else f"{{{name}}}"


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _sort_key(line: Line) -> list[int]:
    """Return the sort key of `--sort=i`: the number, and the first index or the component."""
    return [int(digits) for digits in re.findall(r"[0-9]+", line.displayed_id)[:2]]


def _usual_sort_key(line: Line) -> tuple[str, int, bool]:
    """Return the sort key without `--sort`: the partition, the state, and the priority, 0 for held jobs."""
    return line.job.queue, list(SHORT_STATES).index(line.state), line.job.state is FakeState.HELD


def sacct(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """List jobs from the accounting."""
    refuse_if({"Slurm accounting storage is disabled": not scheduler.accounting}, 1)
    parsed = _SACCT.parse(invocation.arguments, permutes=True)
    options, ids = parsed.options, _ids(parsed)
    check_ids(ids, "sacct: fatal: Bad job/step specified: {}\n")
    columns = _account_columns(invocation, scheduler.clock())
    if "helpformat" in options:
        return _table_of_names(columns)
    names = _requested_names(parsed, columns)
    wanted = [
        job
        for job in _select(scheduler.accounted(), ids)
        if is_selected(job, options) and ("state" not in options or _is_in_state(job, options["state"]))
    ]
    rows = [row for line in queue_lines(wanted) for row in _account_rows(line, columns, names, options)]
    return _format_accounts([] if "noheader" in options else [names], rows, options)


def _requested_names(parsed: Arguments, columns: Iterable[str]) -> list[str]:
    """Return the names of the columns that `--format` asks for, or the default ones."""
    default = "JobID,State,ExitCode" if "brief" in parsed.options else _SACCT_DEFAULT
    words = ",".join(parsed.values.get("format", [default])).split(",")
    requested = list(filter(None, (word.partition("%")[0] for word in words)))
    known = {name.lower(): name for name in columns}
    unknown = (name for name in requested if name.lower() not in known)
    refuse_if({f'Invalid field requested: "{name}"': True for name in unknown}, 1, "sacct: fatal: {}\n")
    return [known[name.lower()] for name in requested]


def _format_accounts(
    heading: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], options: Mapping[str, str]
) -> str:
    """Return the rows for programs, or as a table for people."""
    if "parsable2" in options or "parsable" in options:
        delimiter = options.get("delimiter", "|")
        end = "" if "parsable2" in options else delimiter
        return join_lines(delimiter.join(row) + end for row in [*heading, *rows])
    rules = [["-" * _SACCT_WIDTH] * len(it) for it in heading]
    return join_lines(map(_padded, [*heading, *rules, *rows]))


def _table_of_names(columns: Iterable[str]) -> str:
    """Return the names of columns, four in a line."""
    cells = [f"{name:<20}" for name in columns]
    return join_lines("".join(cells[start : start + 4]) for start in range(0, len(cells), 4))


def _account_rows(
    line: Line, columns: _Columns, names: Sequence[str], options: Mapping[str, str]
) -> Iterator[list[str]]:
    """Yield the row of a job; and that of the step of its script, in a listing that asks what steps used."""
    values = {name: column(line) for name, column in columns.items()}
    yield [values[name] for name in names]
    if line.job.started is not None and "MaxRSS" in names and "allocations" not in options:
        of_step = {it: f"{values[it]}.batch" for it in ("JobID", "JobIDRaw")}
        others = {"Submit": values["Start"], "NTasks": "1", "Comment": "", "SubmitLine": "", "Reason": ""}
        values |= {**of_step, **others, "JobName": "batch"}
        yield [values[name] for name in names]


def _padded(row: Sequence[str]) -> str:
    return "".join(f"{cell[:_SACCT_WIDTH]:>{_SACCT_WIDTH}} " for cell in row)


def _ids(parsed: Arguments) -> list[str]:
    """Return the ids that `--jobs` names; the commas within the brackets of an array separate no ids."""
    words = re.split(r",(?![^\[]*\])", ",".join(parsed.values.get("jobs", [])))
    return [native_id for native_id in words if native_id]


def _select(jobs: Sequence[FakeJob], ids: Sequence[str]) -> list[FakeJob]:
    """Return the jobs that ids name, or all jobs, in their order."""
    named = {job for found in find_jobs(ids, jobs).values() for job in found}
    return [job for job in jobs if not ids or job in named]
