"""`squeue` and `sacct` of the fake of Slurm.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from jpsi_testing.fake import (
    CommandError,
    FakeJob,
    FakeScheduler,
    Invocation,
    OptionTable,
    join_lines,
    refuse_if,
)

from ..native_ids import parent_id
from .arrays import check_ids, find_jobs, queue_lines
from .states import SHORT_STATES, Line, format_elapsed, format_limit, format_time

_SQUEUE = OptionTable(
    flags="all|a array|r me noheader|h",
    valued="Format|O clusters|M format|o jobs|j name|n sort|S states|t user|u",
    unknown=(1, "squeue: unrecognized option '{}'\n"),
    abbreviates=True,
)
_SACCT = OptionTable(
    flags="allocations|X duplicates|D noheader|n parsable|p parsable2|P",
    valued="clusters delimiter format|o jobs|j starttime",
    unknown=(1, "sacct: unrecognized option '{}'\n"),
    abbreviates=True,
)
# squeue(1): the default format, and the columns of its letters; a point aligns the value to the right
_DEFAULT_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_LETTER = re.compile(r"%(?P<right>\.?)(?P<width>\d*)(?P<letter>[a-zA-Z])")
_LETTERS = {
    "A": "jobarrayid",
    "D": "numnodes",
    "M": "timeused",
    "N": "nodelist",
    "P": "partition",
    "R": "reasonlist",
    "S": "starttime",
    "T": "state",
    "V": "submittime",
    "a": "account",
    "i": "jobarrayid",
    "j": "name",
    "k": "comment",
    "r": "reason",
    "t": "statecompact",
    "u": "username",
}
# A field of --Format: a point aligns the value to the right, and the text after the width ends the field.
_FIELD = re.compile(r"(?P<name>[^:]*)(?:(?P<colon>:)(?P<right>\.?)(?P<width>\d*)(?P<end>.*))?", re.DOTALL)
_HEADINGS = {
    "allocnodes": "ALLOC_NODES",
    "endtime": "END_TIME",
    "jobarrayid": "JOBID",
    "numcpus": "CPUS",
    "numnodes": "NODES",
    "numtasks": "TASKS",
    "reasonlist": "NODELIST(REASON)",
    "restartcnt": "RESTART_COUNT",
    "starttime": "START_TIME",
    "statecompact": "ST",
    "submittime": "SUBMIT_TIME",
    "timelimit": "TIME_LIMIT",
    "timeused": "TIME",
    "username": "USER",
    "workdir": "WORK_DIR",
}
# The widths of a column of --Format, and of sacct's output for people
_DEFAULT_WIDTH, _SACCT_WIDTH = "20", 12

_Columns = Mapping[str, Callable[[Line], str]]


def _queue_columns(call: Invocation, now: float) -> _Columns:
    return {
        "account": lambda line: line.job.project or "(null)",
        "allocnodes": lambda _line: platform.node(),
        "comment": lambda line: line.job.tag or "(null)",
        "endtime": lambda line: format_time(line.job.ended, call, "N/A"),
        "exit_code": lambda line: str(line.status),
        "jobarrayid": lambda line: line.displayed_id,
        "jobid": lambda line: line.number,
        "name": lambda line: line.job.name,
        "nodelist": lambda line: line.nodes,
        "numcpus": lambda line: str(line.job.slots),
        "numtasks": lambda line: str(line.job.slots),
        "numnodes": lambda line: str(line.job.attributes.get("nodes", 1)),
        "partition": lambda line: line.job.queue,
        "reason": lambda line: line.reason,
        "reasonlist": lambda line: line.nodes_or_reason,
        "restartcnt": lambda line: str(line.job.restarts),
        "starttime": lambda line: format_time(line.job.started, call, "N/A"),
        "state": lambda line: line.state,
        "statecompact": lambda line: SHORT_STATES[line.state],
        "submittime": lambda line: format_time(line.job.submitted, call, "N/A"),
        "timelimit": lambda line: format_limit(line.job),
        "timeused": lambda line: format_elapsed(line.job, now),
        "username": lambda line: line.job.owner,
        "workdir": lambda line: line.job.directory,
    }


def _account_columns(call: Invocation) -> _Columns:
    return {
        # slurmdbd gets the comment when the job ends
        "comment": lambda line: line.job.tag if line.job.state.final else "",
        "end": lambda line: format_time(line.job.ended, call, "Unknown"),
        "exitcode": lambda line: line.exit_code,
        "jobid": lambda line: line.displayed_id,
        "jobidraw": lambda line: line.number,
        "jobname": lambda line: line.job.name,
        "nodelist": lambda line: line.nodes or "None assigned",
        "reason": lambda _line: "None",
        # without JobAcctGatherType, slurmd measures nothing
        "maxrss": lambda _line: "",
        "ntasks": lambda _line: "",
        "start": lambda line: format_time(line.job.started, call, "Unknown"),
        "state": lambda line: line.accounted_state,
        "submit": lambda line: format_time(line.job.submitted, call, "Unknown"),
        "submitline": lambda line: line.job.attributes.get("submit_line", "sbatch job.sh"),
        "totalcpu": lambda _line: "00:00:00",
    }


def squeue(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """List jobs in the form of `--Format` or `--format`, or as a table for people."""
    options = _SQUEUE.parse(invocation.arguments, permutes=True).options
    jobs = scheduler.listed()
    ids = _ids(options)
    check_ids(ids, "squeue: error: Invalid job id: {}\n")
    if len(ids) == 1 and not any(find_jobs([parent_id(ids[0])], jobs).values()):
        raise CommandError(1, "slurm_load_jobs error: Invalid job id specified\n")
    jobs = [job for job in _select(jobs, ids) if _is_wanted(job, options)]
    columns = _queue_columns(invocation, scheduler.clock())
    lines = [Line(job, job.native_id) for job in jobs]
    if "Format" in options:
        template, unknown = _template_of_fields(options["Format"], columns)
        lines = lines if "array" in options else list(queue_lines(jobs))
        if options.get("sort") in {"i", "-i"}:
            lines.sort(key=_sort_key, reverse=options["sort"] == "-i")
    else:
        template, unknown = _template_of_letters(options.get("format", _DEFAULT_FORMAT))
    refuse_if({f"Invalid job format specification: {', '.join(unknown)}": unknown}, 1, "squeue: error: {}\n")
    heading = {name: _HEADINGS.get(name, name.upper()) for name in columns}
    rows = [{name: column(line) for name, column in columns.items()} for line in lines]
    return join_lines(map(template.format_map, rows if "noheader" in options else [heading, *rows]))


def _is_wanted(job: FakeJob, options: Mapping[str, str]) -> bool:
    return (
        (options.get("states") == "all" or not job.state.final)
        and ("me" not in options or job.is_own)
        and options.get("user", job.owner) == job.owner
        and options.get("name", job.name) == job.name
    )


def _template_of_letters(form: str) -> tuple[str, list[str]]:
    """Return the template of a line in the form of `--format`, and the unknown letters."""
    unknown = {field["letter"] for field in _LETTER.finditer(form)} - _LETTERS.keys()
    template = _LETTER.sub(lambda field: _cell(_LETTERS.get(field["letter"], ""), field), _escape(form))
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


def sacct(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """List jobs from the accounting."""
    refuse_if({"Slurm accounting storage is disabled": not scheduler.accounting}, 1)
    options = _SACCT.parse(invocation.arguments, permutes=True).options
    check_ids(_ids(options), "sacct: fatal: Bad job/step specified: {}\n")
    columns = _account_columns(invocation)
    names = options.get("format", "JobID,JobName,State,ExitCode").split(",")
    unknown = (name for name in names if name.lower() not in columns)
    refuse_if({f'Invalid field requested: "{name}"': True for name in unknown}, 1, "sacct: fatal: {}\n")
    lines = queue_lines(_select(scheduler.accounted(), _ids(options)))
    rows = [row for line in lines for row in _account_rows(line, columns, names, options)]
    heading = [] if "noheader" in options else [names]
    if "parsable2" in options or "parsable" in options:
        delimiter = options.get("delimiter", "|")
        end = "" if "parsable2" in options else delimiter
        return join_lines(delimiter.join(row) + end for row in [*heading, *rows])
    heading += [["-" * _SACCT_WIDTH] * len(it) for it in heading]
    return join_lines(map(_padded, [*heading, *rows]))


def _account_rows(
    line: Line, columns: _Columns, names: Sequence[str], options: Mapping[str, str]
) -> Iterator[list[str]]:
    """Yield the row of a job, and that of the step of its script unless only allocations are listed."""
    values = {name: column(line) for name, column in columns.items()}
    yield [values[name.lower()] for name in names]
    if line.job.started is not None and "allocations" not in options:
        of_step = {it: f"{values[it]}.batch" for it in ("jobid", "jobidraw")}
        others = {"submit": values["start"], "ntasks": "1", "comment": "", "submitline": "", "reason": ""}
        values |= {**of_step, **others, "jobname": "batch"}
        yield [values[name.lower()] for name in names]


def _padded(row: Sequence[str]) -> str:
    return "".join(f"{cell[:_SACCT_WIDTH]:>{_SACCT_WIDTH}} " for cell in row)


def _ids(options: Mapping[str, str]) -> list[str]:
    return [native_id for native_id in options.get("jobs", "").split(",") if native_id]


def _select(jobs: Sequence[FakeJob], ids: Sequence[str]) -> list[FakeJob]:
    """Return the jobs that ids name, or all jobs, in their order."""
    named = {job for found in find_jobs(ids, jobs).values() for job in found}
    return [job for job in jobs if not ids or job in named]
