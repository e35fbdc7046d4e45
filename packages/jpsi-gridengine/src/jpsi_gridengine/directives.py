"""Renders a job spec into `#$` lines, and reads those of scripts that were written for Grid Engine's qsub.

`render_script` writes the script of each job; `check_spec` reports before that what no directive can express;
`read_script` converts a script of a user into a job of jpsi.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

from jpsi.plugin import (
    Dependency,
    DependencyKind,
    ForeignScript,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    Script,
    Site,
    SubmitContext,
    hookimpl,
    kit,
    node_count,
    parse_duration,
    units,
    walltime,
)

from .config import SLOTS_PLACEHOLDER, GridEngineConfig
from .custom_options import ARRAY_RANGE, CUSTOM, requested_slots, split_parallel_environment, value_problems
from .job_names import context as kept_name
from .job_names import job_name
from .native_ids import job_number

_MEBIBYTE = 1 << 20
_SECOND = timedelta(seconds=1)
# sge_types(5) of 8.1.9: object_name. With other names, the output of qsub itself becomes malformed.
_PRINTABLE = re.compile(r"[!-~]+\Z")
_WORDS = {None: None, True: "yes", False: "no"}
_TRUE_WORDS = frozenset({"y", "yes"})
# sge_submit(1) of 8.1.9: the number of arguments of each option.
_ARGUMENT_COUNTS = {
    **dict.fromkeys(("V", "clear", "cwd", "hard", "help", "notify", "soft", "terse", "verify"), 0),
    **dict.fromkeys(("A", "C", "M", "N", "P", "R", "S", "a", "ac", "ar", "b", "binding", "c", "ckpt"), 1),
    **dict.fromkeys(("dc", "dl", "e", "h", "hold_jid", "hold_jid_ad", "i", "j", "js", "jsv", "l", "m"), 1),
    **dict.fromkeys(("masterq", "now", "o", "p", "q", "r", "sc", "shell", "sync", "t", "tc", "v", "w"), 1),
    "wd": 1,
    "pe": 2,
}
# sge_types(5) of 8.1.9, memory_specifier: capital letters are powers of 1024, small ones of 1000
_UNITS = {"": 1} | {
    unit: size
    for power, letter in enumerate("kmgt", 1)
    for unit, size in ((letter, 1000**power), (letter.upper(), 1024**power))
}
# Variables in paths, which Grid Engine replaces, or the slash at the end of a directory
_PATTERN = re.compile(r"\$|/\Z")
_HOST = re.compile(r"\A[A-Za-z0-9.-]*:")


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which Grid Engine can never run this spec."""
    return [*_name_problems(spec), *value_problems(spec), *_FORM.problems(spec, site)]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _FORM.render(spec, context)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """Return the job that the `#$` lines describe, anywhere in the script."""
    script = _FORM.read(text, site)
    # sge_submit(1): without -cwd or -wd, a job runs in the home directory
    script.spec.directory = script.spec.directory or Path("~")
    return script


def _name_problems(spec: JobSpec) -> Iterator[str]:
    for name in JobAttributes.text_names():
        value = getattr(spec.attributes, name)
        if value and not _PRINTABLE.match(value):
            yield f"attributes.{name} cannot be {value!r}: Grid Engine knows no blanks, and ASCII alone"


def _path(value: str) -> Path:
    return kit.read_path(_HOST.sub("", value), _PATTERN)


def _is_joined(draft: kit.Draft) -> bool:
    return draft.options.get("j") in _TRUE_WORDS


def _read_error(draft: kit.Draft, value: str) -> None:
    if not _is_joined(draft):
        draft.spec.stderr_path = _path(value)
        _report_appended(draft, "e", value)


def _read_tasks(draft: kit.Draft, value: str) -> None:
    limit = draft.options.get("tc")
    read = kit.array_reader("SGE_TASK_ID", range_variables=ARRAY_RANGE)
    read(draft, value if limit is None else f"{value}%{limit}")


def _read_shell(draft: kit.Draft, value: str) -> None:
    draft.spec.executable = str(_path(value))


def _write_requests(request: kit.JobRequest) -> str | None:
    """Return the value of `-l`; Grid Engine takes amounts of countable resources per slot."""
    requested, config = request.resources, request.config
    limit, slots = walltime(request.spec, config, _SECOND), _count_slots_of_job(request)
    requests: dict[str, str] = {}
    if limit is not None:
        requests["h_rt"] = str(limit)
    if requested.memory is not None:
        share = f"{units(requested.memory, slots * _MEBIBYTE)}M"
        requests.update(dict.fromkeys(config.memory_resource.split(","), share))
    if requested.gpu_cores_per_process:
        gpus = requested.gpu_cores_per_process * requested.computed_process_count
        requests.update(_gpu_requests(gpus, config, slots))
        if kind := kit.gpu_type(request):
            requests[_gpu_type_resource(config)] = kind
    if requested.exclusive_node_use:
        requests[config.exclusive_resource] = "true"
    return ",".join(f"{name}={value}" for name, value in requests.items()) or None


def _count_slots_of_job(request: kit.JobRequest) -> int:
    """Return the number of slots of a job; raise ValueError if the user's `pe` has too few."""
    needed, user_slots = request.resources.computed_core_count, requested_slots(request.spec)
    if user_slots is not None and user_slots < needed:
        msg = f"custom attribute gridengine.pe has {user_slots} slots, and the job's processes need {needed}"
        raise ValueError(msg)
    return user_slots or needed


def _gpu_requests(gpus: int, config: GridEngineConfig, slots: int) -> dict[str, str]:
    if config.gpu_resource is None:
        msg = "GPUs: name the resource that counts them as `gpu_resource` in the executor's configuration"
        raise ValueError(msg)
    share, remainder = divmod(gpus, slots)
    if remainder:
        raise ValueError(
            f"GPUs are counted for each slot, that is, each CPU core: {gpus} GPUs cannot be shared equally "
            f"among {slots} slots"
        )
    return dict.fromkeys(config.gpu_resource.split(","), str(share))


def _gpu_type_resource(config: GridEngineConfig) -> str:
    if config.gpu_type_resource is None:
        where = "as `gpu_type_resource` in the executor's configuration"
        raise ValueError(f"attributes.gpu_type: name the resource that has it {where}")
    return config.gpu_type_resource


def _read_requests(draft: kit.Draft, value: str) -> None:
    """Read the requests of `-l`, whose amounts are per slot; keep those that a spec cannot express."""
    config, others = draft.config, []
    readers: dict[str, kit.Reader] = {
        config.exclusive_resource: _read_exclusive,
        **dict.fromkeys((config.gpu_resource or "").split(","), _read_gpus),
        **dict.fromkeys(config.memory_resource.split(","), _read_memory),
        config.gpu_type_resource or "": _read_gpu_type,
        "h_rt": _read_limit,
    }
    for request in value.split(","):
        name, _, text = request.partition("=")
        try:
            readers[name](draft, text)
        except (KeyError, ValueError):
            others.append(request)
    if others:
        draft.keep("l", ",".join(others))


def _read_limit(draft: kit.Draft, text: str) -> None:
    draft.attributes.duration = timedelta(0) if text.upper() == "INFINITY" else parse_duration(text)


def _read_memory(draft: kit.Draft, text: str) -> None:
    draft.resources.memory = kit.read_amount(text, _UNITS) * draft.resources.computed_core_count


def _read_gpus(draft: kit.Draft, text: str) -> None:
    cores = draft.resources.cpu_cores_per_process or 1
    draft.resources.gpu_cores_per_process = kit.read_count(text) * cores


def _read_gpu_type(draft: kit.Draft, text: str) -> None:
    draft.attributes.gpu_type = text


def _read_exclusive(draft: kit.Draft, text: str) -> None:
    if text.lower() not in {"", "true", "1"}:
        raise ValueError("jpsi cannot express it")
    draft.resources.exclusive_node_use = True


def _write_environment(request: kit.JobRequest) -> str | None:
    # A user's own environment need not be a configured one.
    has_own = CUSTOM.of(request.spec).get("pe")
    return None if has_own else parallel_environment(request.resources, request.config)


def _read_environment(draft: kit.Draft, value: str) -> None:
    """Read the slots of a configured parallel environment; keep any other as the custom attribute `pe`."""
    name, _, text = value.partition(" ")
    if not text.isdecimal() or not int(text):
        draft.lose("pe", value, "a job of jpsi has one number of slots")
        return
    slots, resources, config = int(text), draft.resources, draft.config
    per_node = _slots_per_node(config.parallel_environment, name)
    if per_node and not slots % per_node:
        resources.node_count, resources.processes_per_node = slots // per_node, per_node
    elif name == config.node_environment:
        resources.cpu_cores_per_process = slots
    else:
        resources.process_count = slots
        if name != config.parallel_environment:
            draft.keep("pe", value)


def _slots_per_node(family: str | None, name: str) -> int | None:
    """Return the slots per node of an environment of a family such as `mpi-{slots}`; None for others."""
    if family is None or SLOTS_PLACEHOLDER not in family:
        return None
    match = re.fullmatch(re.escape(family).replace(re.escape(SLOTS_PLACEHOLDER), "([1-9][0-9]*)"), name)
    return None if match is None else int(match[1])


def _write_dependencies(request: kit.JobRequest) -> str | None:
    # -hold_jid takes no single tasks: a dependency on a task waits for its whole array.
    return ",".join(dict.fromkeys(job_number(str(it.native_id)) for it in request.context.after)) or None


def _read_dependencies(draft: kit.Draft, value: str) -> None:
    ids = value.split(",")
    if not all(job_id.isdecimal() for job_id in ids):
        raise ValueError("jpsi supports dependencies on job numbers only, not on names")
    draft.attributes.after = [Dependency(job_id, DependencyKind.ANY) for job_id in ids]


def _read_output(draft: kit.Draft, value: str) -> None:
    kit.output_reader(_path, _is_joined)(draft, value)
    _report_appended(draft, "o", value)


def _report_appended(draft: kit.Draft, flag: str, value: str) -> None:
    if value != _NO_FILE:
        draft.lose(flag, value, "Grid Engine appends to the file, and jpsi's script empties it first")


def _report_soft(draft: kit.Draft, _value: str) -> None:
    draft.lose("soft", None, "jpsi turns the soft requests after it into hard ones")


_NO_FILE = "/dev/null"
_DIRECTORY = kit.path_reader("directory", lambda value: kit.read_path(value or ".", _PATTERN))
# sge_submit(1) of 8.1.9, OPTIONS, in the order in which they are written
_OPTIONS = {
    "N": kit.Option(lambda it: job_name(it.spec.name, it.context.tag), kit.read_name),
    "t": kit.Option(
        lambda it: None if it.context.elements is None else f"1-{it.context.elements}", _read_tasks
    ),
    "tc": kit.Option(lambda it: it.context.at_a_time, kit.ignore_option),
    "ac": kit.Option(lambda it: kept_name(it.spec.name)),
    "S": kit.Option("/bin/sh", _read_shell),
    "cwd": kit.Option(None, _DIRECTORY),
    # The runner opens the job's streams. A directory or file that Grid Engine cannot open would leave the job
    # in an error state for ever.
    "wd": kit.Option("/", _DIRECTORY),
    "i": kit.Option(None, kit.path_reader("stdin_path", _path)),
    "o": kit.Option(_NO_FILE, _read_output),
    "e": kit.Option(_NO_FILE, _read_error),
    "V": kit.Option(write=True, read=kit.ignore_option),
    "v": kit.Option(None, kit.variables_reader()),
    "q": kit.attribute_option("queue_name"),
    "P": kit.attribute_option("project_name"),
    "ar": kit.attribute_option("reservation_id"),
    **kit.mail_options("M", "m", {"begin": "b", "end": "ae"}),
    # it uses the slots that `pe` requests
    "l": kit.Option(_write_requests, _read_requests, expresses=("gpu_type",), is_read_last=True),
    "pe": kit.Option(_write_environment, _read_environment),
    "r": kit.Option(lambda it: _WORDS[it.config.requeue]),
    "hold_jid": kit.Option(_write_dependencies, _read_dependencies),
    "soft": kit.Option(None, _report_soft),
    # what jpsi does anyway
    "j": kit.Option(None, kit.join_reader(_is_joined)),
    **dict.fromkeys(("hard", "terse"), kit.Option(None, kit.ignore_option)),
}
_FORM = kit.ScriptForm(
    mark="#$",
    # qsub(1): environmental variables
    directory_variables=("SGE_O_WORKDIR",),
    variables=r"SGE_\w+|NSLOTS|NHOSTS|NQUEUES|PE_HOSTFILE|JOB_ID",
    foreign_mark=r"#\$(?=[\s-]|\Z)",
    is_read_whole=True,
    dashes="-",
    joint=" ",
    options=_OPTIONS,
    custom=CUSTOM,
    spelled=split_parallel_environment,
    # qsub of 8.1.9 compares whole words
    parse=partial(kit.dash_options, counts=_ARGUMENT_COUNTS, joins_values=False),
    joints={"l": ",", "v": ",", "hold_jid": ","},
)


_CONFIGURE = "in the executor's configuration (`qconf -spl` lists those of the site)"


def parallel_environment(resources: ResourceSpecV1, config: GridEngineConfig) -> str | None:
    """Return the parallel environment for a job, with the slots; None for a job with one slot.

    The environment defines how slots are spread over nodes, so that the configuration must name one that
    matches the job's layout.

    Raises:
        ValueError: no configured environment matches.
    """
    total = resources.computed_core_count  # a slot each
    return None if total == 1 else f"{_environment_name(resources, config, total)} {total}"


def _environment_name(resources: ResourceSpecV1, config: GridEngineConfig, total: int) -> str:
    nodes, cores = node_count(resources), resources.cpu_cores_per_process or 1
    spread, one_node = config.parallel_environment, config.node_environment
    # All cores of a process must be on one node.
    is_on_one_node = nodes == 1 or (nodes is None and cores > 1)
    if is_on_one_node and one_node is not None:
        return one_node.replace(SLOTS_PLACEHOLDER, str(total))
    if spread is not None and SLOTS_PLACEHOLDER in spread:
        return _spread_name(spread, total, resources.computed_processes_per_node * cores if nodes else total)
    default = spread or one_node
    if nodes is None and not is_on_one_node and default is not None:
        return default
    raise ValueError(_missing_environment(total, nodes, is_on_one_node=is_on_one_node))


def _spread_name(spread: str, total: int, per_node: int) -> str:
    """Return the member of a family of environments that gives each node so many slots."""
    if total % per_node == 0:
        return spread.replace(SLOTS_PLACEHOLDER, str(per_node))
    raise ValueError(
        f"Grid Engine gives each node the same number of slots, and {total} slots are no multiple of "
        f"{per_node}"
    )


def _missing_environment(total: int, nodes: int | None, *, is_on_one_node: bool) -> str:
    if is_on_one_node:
        return f"{total} slots on one node: name a parallel environment as `node_environment` {_CONFIGURE}"
    if nodes is None:
        return f"{total} slots: name a parallel environment as `parallel_environment` {_CONFIGURE}"
    return (
        f"{total} slots on {nodes} nodes: Grid Engine has no option for the slots of each node; give only "
        f"process_count, or name a family of parallel environments as `parallel_environment`, such as "
        f"mpi-{SLOTS_PLACEHOLDER}, {_CONFIGURE}, or one in the custom attribute gridengine.pe"
    )
