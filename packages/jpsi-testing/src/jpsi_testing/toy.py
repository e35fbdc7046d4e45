"""The executor `toy`: a complete backend for an imaginary batch system; start yours from a copy.

Its commands are `tsubmit`, `tstat`, `tdel`, `thold` and `trelease`; `toy_fake` implements them.
The tests of jpsi-testing and of jpsi use it where any batch system will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from jpsi.plugin import (
    Arrays,
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    DependencyKind,
    Directive,
    ExecutorConfig,
    Failure,
    FailureKind,
    JobAttributes,
    JobSpec,
    JobState,
    Observation,
    Reason,
    Script,
    SubmitContext,
    SubmitException,
    components,
    hookimpl,
    walltime,
)
from jpsi.plugin.kit import extract_tag, parse_time, read_indices

# In the order of the manual: tstat(1), STATES.
_STATES: Mapping[str, tuple[JobState, Reason | None]] = {
    "WAITING": (JobState.QUEUED, None),
    "HELD": (JobState.QUEUED, None),
    "RUNNING": (JobState.ACTIVE, None),
    "DONE": (JobState.COMPLETED, None),
    "ERROR": (JobState.FAILED, None),
    "DELETED": (JobState.CANCELED, Reason.CANCELLED),
    "VAIN": (JobState.CANCELED, Reason.DEPENDENCY),
    "TIMEUP": (JobState.FAILED, Reason.TIMEOUT),
    "NODELOST": (JobState.FAILED, Reason.NODE_FAIL),
}
# Exit codes of tsubmit(1): the request is wrong, or the server cannot be contacted.
_REFUSED = 2
_NO_CONTACT = 3

_SECOND = timedelta(seconds=1)
# The attributes that no option of tsubmit expresses.
_NOT_OFFERED = set(JobAttributes.text_names()).difference(["queue_name", "project_name"])

# The first line of tstat; a site may print more before it.
_HEADER = "ID STATE CODE RESTARTS SUBMITTED TAG"
# The last line of tstat.
_FOOTER = re.compile(r"(?P<count>\d+) lines")
# One line of tstat: id, state, exit code or -, restarts, submission in seconds since 1970, tag. An element of
# an array is 17.3, and those that wait share a line: 17.1-2,4.
_ROW = re.compile(
    r"(?P<id>\d+)(\.(?P<indices>[\d,-]+))? (?P<word>\w+) (?P<code>\d+|-) (?P<restarts>\d+) "
    r"(?P<submitted>\d+) (?P<tag>[\w-]*)"
)


@hookimpl
def config_class() -> type[ExecutorConfig]:
    """Return the class of the configuration, that of every batch system."""
    return BatchConfig


@hookimpl
def capabilities() -> Capabilities:
    """Return what toys offer: dependencies of every kind, several kinds of slots, and arrays."""
    return Capabilities(
        default_launcher="multiple",
        id_variable="TOY_JOB_ID",
        dependencies=frozenset(DependencyKind),
        heterogeneous=True,
        arrays=Arrays(largest=100, id_variable="TOY_ARRAY_ID", index_variable="TOY_INDEX", limits=True),
    )


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    """Return why a job can never run here: each attribute of a job is in the script, or refused."""
    attributes = spec.attributes
    slots = components(spec.resources)
    options = [name for name in attributes.custom_attributes or {} if name.startswith("toy.")]
    refusals = {
        "a toy has one node": any(it.computed_node_count > 1 for it in slots),
        "a toy has no GPUs": any(it.gpu_cores_per_process for it in slots),
        "a toy gives no job a node of its own": any(it.exclusive_node_use for it in slots),
        "a toy limits no memory": any(it.memory is not None for it in slots),
        **{f"a toy has no {name}": getattr(attributes, name) is not None for name in _NOT_OFFERED},
        f"a toy has no further options: {options}": options,
    }
    return [problem for problem, is_true in refusals.items() if is_true]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Return the directives of a job."""
    options = [(option, value) for option, value in _options(spec, context) if value is not None]
    return Script([Directive.of("#TOY", option, value) for option, value in options])


def _options(spec: JobSpec, context: SubmitContext) -> Iterator[tuple[str, str | None]]:
    attributes = spec.attributes
    seconds = walltime(spec, context.site.config, _SECOND)
    yield "tag", context.tag
    yield "name", spec.name or None
    yield "queue", attributes.queue_name
    yield "project", attributes.project_name
    yield "seconds", None if seconds is None else str(seconds)
    if spec.resources is not None:
        yield "slots", str(sum(it.computed_core_count for it in components(spec.resources)))
    yield "elements", None if context.elements is None else str(context.elements)
    yield "at-a-time", None if context.at_a_time is None else str(context.at_a_time)
    yield "after", ",".join(f"{it.kind.value}:{it.native_id}" for it in context.after) or None


@hookimpl
def submit(script: Script) -> Command:
    """Return the command that submits a script, which it reads from standard input."""
    return Command(["tsubmit"], stdin=script.text, unset=["TOY_*"])


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the native id; ValueError if the output does not contain exactly one."""
    # sites print what they like around it
    found = re.findall(r"^accepted as job (\d+)$", result.stdout, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"tsubmit printed no job id: {result.stdout!r}")
    return str(found[0])


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """Return the native ids of array elements."""
    return [f"{native_id}.{index}" for index in indices]


@hookimpl
def arrays_of(native_ids: Sequence[str]) -> dict[str, str]:
    """Return, by native id of an element, the native id of its array."""
    return {native_id: native_id.partition(".")[0] for native_id in native_ids if "." in native_id}


@hookimpl
def classify_failure(result: CommandResult) -> Failure | None:
    """Return what a failed submission means; None if it is unclear."""
    kinds = {_REFUSED: FailureKind.INVALID_JOB, _NO_CONTACT: FailureKind.TRANSIENT}
    kind = kinds.get(result.returncode)
    return None if kind is None else Failure(kind, result.complaint)


@hookimpl
def find() -> Command:
    """Return the command that lists all jobs with their tags."""
    return Command(["tstat", "--all"])


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> dict[str, str]:
    """Return the native ids of the jobs with these tags."""
    return {row["tag"]: row["id"] for row in _rows(result) if row["tag"] in tags}


@hookimpl
def query(native_ids: Sequence[str] | None) -> Command:
    """Return the command that lists some jobs; for None, all jobs of the user."""
    return Command(["tstat", *(["--all"] if native_ids is None else native_ids)])


@hookimpl
def parse_status(result: CommandResult) -> dict[str, Observation]:
    """Return an observation of each job in the output; SubmitException if it is incomplete."""
    return _observations(result)


@hookimpl
def query_finished(native_ids: Sequence[str]) -> Command:
    """Return the command that lists jobs that have ended."""
    return Command(["tstat", "--finished", *native_ids])


@hookimpl
def parse_finished(result: CommandResult) -> dict[str, Observation]:
    """Return an observation of each ended job in the output; SubmitException if it is incomplete."""
    return _observations(result)


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """Return the command that cancels jobs."""
    return Command(["tdel", *native_ids])


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """Return the command that holds jobs."""
    return Command(["thold", *native_ids])


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """Return the command that releases jobs."""
    return Command(["trelease", *native_ids])


def _observations(result: CommandResult) -> dict[str, Observation]:
    found: dict[str, Observation] = {}
    for row in _rows(result):
        observation = _observation(row)
        found.update((native_id, observation) for native_id in _ids(row))
    return found


def _ids(row: re.Match[str]) -> list[str]:
    if row["indices"] is None:
        return [row["id"]]
    return [f"{row['id']}.{index}" for indices in read_indices(row["indices"]) for index in indices]


def _rows(result: CommandResult) -> list[re.Match[str]]:
    """Parse the lines about jobs, between the first line and the last; skip text before them.

    Raises:
        SubmitException: the answer is incomplete.
    """
    _, header, listed = result.checked().stdout.partition(f"{_HEADER}\n")
    *lines, last = listed.splitlines() or [""]
    rows = [_ROW.fullmatch(line) for line in lines]
    end = _FOOTER.fullmatch(last)
    if not header or end is None or int(end["count"]) != len(lines) or not listed.endswith("\n"):
        raise SubmitException(f"tstat did not answer to its end: {result.stdout!r}", transient=True)
    if unparsed := [line for line, row in zip(lines, rows, strict=True) if row is None]:
        raise SubmitException(f"tstat printed {unparsed[0]!r}", transient=True)
    return [row for row in rows if row is not None]


def _observation(row: re.Match[str]) -> Observation:
    state, reason = _STATES.get(row["word"], (None, None))
    return Observation(
        state=state,
        native_state=row["word"],
        tag=extract_tag(row["tag"]),
        submitted=parse_time(row["submitted"]),
        reason=reason,
        exit_code=None if row["code"] == "-" else int(row["code"]),
        # tstat(1): only a job that has run has a code
        ran=None if state is None or not state.final else row["code"] != "-",
        restarts=int(row["restarts"]),
    )
