"""Sets the fields of a job spec from options of the command line.

`jpsi run`, `submit` and `script` use it. It reports all wrong values together, by the names of their options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import jpsi
from jpsi.plugin import components
from jpsi.plugin.kit import SIGNALS
from jpsi_engine import job_field_problems

from .. import messages
from ..output import quantities

if TYPE_CHECKING:
    from ..stored_jobs import Dependencies

#: An option as typed: None, False or empty if it was not given.
OptionValue = str | bool | tuple[str, ...] | None
#: The options by their names without dashes.
Options = Mapping[str, OptionValue]


def make_spec(
    document: jpsi.JobSpec | None, command: Sequence[str], options: Options, *, is_expanding: bool
) -> jpsi.JobSpec:
    """Return the spec of a document or a command, as `make_specs` does for several."""
    return make_specs([document], command, options, is_expanding=is_expanding)[0]


def make_specs(
    documents: Iterable[jpsi.JobSpec | None],
    command: Sequence[str],
    options: Options,
    *,
    is_expanding: bool,
) -> list[jpsi.JobSpec]:
    """Return the specs of documents or a command, overridden by the options.

    A job gets the arguments of the command as typed, unless `is_expanding`: then `${NAME}` in them is
    replaced.

    Raises:
        InvalidJobException: options have values that cannot be read; it names them all.
    """
    like = options.get("like")
    # it reads the files of all jobs
    request_like = _read_like(str(like)) if like else None
    return [_make_spec(it, command, options, request_like, is_expanding=is_expanding) for it in documents]


def _make_spec(
    document: jpsi.JobSpec | None,
    command: Sequence[str],
    options: Options,
    request_like: Callable[[jpsi.JobSpec], None] | None,
    *,
    is_expanding: bool,
) -> jpsi.JobSpec:
    spec = jpsi.JobSpec() if document is None else document
    if command:
        executable, *arguments = command
        spec.executable = executable
        spec.arguments = arguments if is_expanding else [jpsi.escape(argument) for argument in arguments]
    problems: list[str] = []
    if request_like is not None:
        # the other options override it
        request_like(spec)
    sizes = [f"--{it.replace('_', '-')}" for it in _SIZES if options.get(it)]
    if len(sizes) > 1:
        problems.append(f"{' and '.join(sizes)} exclude each other")
    for name, value in options.items():
        if value is None or value is False or value == () or name == "like":
            continue
        try:
            _FIELDS[name](spec, value)
        except ValueError as e:
            problems.append(f"{'-' * min(2, len(name))}{name.replace('_', '-')}: {e}")
    if options.get("gpu_type") and not any(it.gpu_cores_per_process for it in components(spec.resources)):
        problems.append("--gpu-type: the job requests no GPUs; --gpus is their number for each process")
    if problems:
        subject = "the command line"
        raise jpsi.InvalidJobException.of(subject, problems)
    return spec


def add_dependencies(job: jpsi.Job, after: Dependencies, *, are_met_alone: bool = False) -> None:
    """Have a job wait for other jobs, and record those of them that have ended already.

    Args:
        job: the job.
        after: the other jobs; if there are any, the job waits for these alone.
        are_met_alone: True if jpsi, not the batch system, waits for the others.
    """
    if job.spec is None:
        return
    attributes = job.spec.attributes
    if after.all or after.met:
        # like every option, it overrides a document
        attributes.after = None if are_met_alone else [*after.native] or None
    if after.met:
        from jpsi_engine.job_store import MET  # noqa: PLC0415  for few jobs

        attributes.set_custom_attribute(MET, " ".join(after.met))


@dataclass(frozen=True)
class _Text:
    """An option with one value, the field that it sets, and the function that reads the value."""

    field: str
    parse: Callable[[str], object]
    section: Callable[[jpsi.JobSpec], object] = lambda spec: spec

    def __call__(self, spec: jpsi.JobSpec, value: object) -> None:
        text = str(value)
        if not text:
            msg = "the value is empty"
            raise ValueError(msg)
        setattr(self.section(spec), self.field, self.parse(text))


def _flag(
    field: str, *, value: bool, section: Callable[[jpsi.JobSpec], object] = lambda spec: spec
) -> Callable[[jpsi.JobSpec, object], None]:
    """Return the setter of an option without a value, which sets a field to a value."""
    return lambda spec, _: setattr(section(spec), field, value)


def _resources(spec: jpsi.JobSpec) -> jpsi.ResourceSpecV1:
    if spec.resources is None:
        spec.resources = jpsi.ResourceSpecV1()
    # the command line cannot say which of several kinds of slots it means
    if not isinstance(spec.resources, jpsi.ResourceSpecV1):
        msg = "the document requests slots of several kinds: change them in the document, not by an option"
        raise ValueError(msg)  # noqa: TRY004  a mistake of the user
    return spec.resources


def _attributes(spec: jpsi.JobSpec) -> jpsi.JobAttributes:
    return spec.attributes


def _container(spec: jpsi.JobSpec) -> jpsi.Container:
    if spec.container is None:
        spec.container = jpsi.Container("")
    return spec.container


def _set_binds(spec: jpsi.JobSpec, values: object) -> None:
    container = _container(spec)
    container.binds = jpsi.Container("", binds=[*(container.binds or ()), *_nonempty_texts(values)]).binds


def _memory(field: str) -> Callable[[jpsi.JobSpec, object], None]:
    """Return the setter of an option that replaces the memory of a document, in whichever way it is given."""

    def replace(spec: jpsi.JobSpec, value: object) -> None:
        resources = _resources(spec)
        resources.memory = resources.memory_per_cpu = resources.memory_per_gpu = None
        _Text(field, quantities.parse_size, _resources)(spec, value)

    return replace


def _directory(text: str) -> Path:
    # Users mean a path relative to the current directory, which a spec cannot say. `~` is the home where the
    # job runs.
    if text == "~" or text.startswith("~/"):
        return Path(text)
    try:
        return Path.cwd() / text
    except FileNotFoundError:
        msg = f"{text!r} is relative to the current directory, which was removed"
        raise ValueError(msg) from None


_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")


def _stream(text: str) -> Path:
    # a job would open its own streams, not those of this command
    if text in {"-", "/dev/stdin", "/dev/stdout", "/dev/stderr"} or text.startswith(_DESCRIPTORS):
        how = "name a file. Without the option, output is shown and input is empty"
        msg = f"{text!r} is not supported; {how}"
        raise ValueError(msg)
    return Path(text)


def _read_like(word: str) -> Callable[[jpsi.JobSpec], None]:
    """Return a function that has a job request what the named ones show that it needs."""
    from ..stored_jobs import complete_usages, listed_jobs, select_jobs  # noqa: PLC0415  rarely needed

    found = select_jobs([word], listed_jobs())
    used = complete_usages([it for it in found if it.status.final])
    times, sizes = [it.suggested_time for it in used], [it.suggested_memory for it in used]
    # a job that was ended at a limit needs no less than it had
    times += [timedelta(seconds=it.time.requested) for it in used if it.time.is_cut and it.time.requested]
    sizes += [int(it.memory.requested) for it in used if it.memory.is_cut and it.memory.requested]
    # what several jobs need, such as those of an array, is what the largest needs
    time = max((it for it in times if it is not None), default=found[0].spec.attributes.duration)
    memory = max((it for it in sizes if it is not None), default=None)
    if not any(it.is_telling for it in used):
        what = f"{word} has not completed, which would show what it needs"
        messages.error(f"--like: {what}; the new job requests what that one requested")

    def request(spec: jpsi.JobSpec) -> None:
        # the other options change it for each job
        spec.resources, spec.attributes.duration = deepcopy(found[0].spec.resources), time
        if memory is not None:
            _resources(spec).memory = memory

    return request


def _warning(text: str) -> tuple[str, float]:
    name, at, time = text.partition("@")
    if not (name and at):
        msg = f"{text!r} is not of the form SIGNAL@TIME, such as USR1@90"
        raise ValueError(msg)
    signal = name.upper().removeprefix("SIG")
    if signal not in SIGNALS:
        msg = f"{name!r} is none of the signals {', '.join(SIGNALS)}"
        raise ValueError(msg)
    return signal, jpsi.parse_duration(time).total_seconds()


# The short words for reasons of retries, and for what grows.
_REASONS = {"oom": "out_of_memory", "node": "node_failure"}
_GROWING = {"memory": "grow_memory", "time": "grow_duration"}


def _set_retry(spec: jpsi.JobSpec, value: object) -> None:
    pairs = _pairs(value, "oom=3,timeout=1", re.compile(r"[0-9]+", re.ASCII))
    counts = {_REASONS.get(name, name): int(number) for name, number in pairs}
    known = {name for name in counts if not job_field_problems({"retry": {name: 1}})}
    if unknown := [repr(name) for name, _ in pairs if _REASONS.get(name, name) not in known]:
        words = f"{', '.join((*_REASONS, 'timeout', 'preempted', 'lost'))} or an exit code from 1 to 255"
        msg = f"{', '.join(unknown)} is no reason, such as {words}"
        raise ValueError(msg)
    spec.attributes.retry = {**(spec.attributes.retry or {}), **counts}


def _set_growth(spec: jpsi.JobSpec, value: object) -> None:
    factors = dict(_pairs(value, "memory=2", re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)))
    if unknown := factors.keys() - _GROWING.keys():
        msg = f"{', '.join(sorted(unknown))} does not grow, only {' and '.join(_GROWING)}"
        raise ValueError(msg)
    growth = {_GROWING[name]: float(number) for name, number in factors.items()}
    spec.attributes.retry = {**(spec.attributes.retry or {}), **growth}


def _pairs(value: object, example: str, form: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return the names and the numbers of an option such as `a=1,b=2`."""
    pairs = [item.partition("=")[::2] for item in str(value).split(",")]
    if not all(name and form.fullmatch(number) for name, number in pairs):
        msg = f"{str(value)!r} is not of the form NAME=NUMBER,..., such as {example}"
        raise ValueError(msg)
    return pairs


def _set_environment(spec: jpsi.JobSpec, values: object) -> None:
    texts = _require_form(values, re.compile(r"[^=]+=.*", re.DOTALL), "NAME=VALUE")
    pairs = (text.partition("=") for text in texts)
    spec.environment = {**(spec.environment or {}), **{name: value for name, _, value in pairs}}


def _set_up(spec: jpsi.JobSpec, values: object) -> None:
    spec.environment_setup = [*(spec.environment_setup or ()), *_nonempty_texts(values)]


def _stage_in(spec: jpsi.JobSpec, values: object) -> None:
    items = [jpsi.StageIn(*_split_stage_in(text)) for text in _nonempty_texts(values)]
    spec.stage_in = [*(spec.stage_in or ()), *items]


def _split_stage_in(text: str) -> tuple[str, Path]:
    # the colon of a URL separates nothing
    here, _, there = text.rpartition(":")
    if here.lower() in {"", "file"} or there.startswith("//"):
        here, there = text, text.rstrip("/").rpartition("/")[2]
    return here, Path(there)


def _stage_out(spec: jpsi.JobSpec, values: object) -> None:
    form = re.compile(r"[^:].*", re.DOTALL)
    texts = (text.partition(":") for text in _require_form(values, form, "NAME or NAME:FILE"))
    items = [jpsi.StageOut(Path(there), here or Path(there).name) for there, _, here in texts]
    spec.stage_out = [*(spec.stage_out or ()), *items]


def _set_cleanup(spec: jpsi.JobSpec, values: object) -> None:
    spec.cleanup = [*(spec.cleanup or ()), *map(Path, _nonempty_texts(values))]


def _nonempty_texts(values: object) -> tuple[str, ...]:
    texts: tuple[str, ...] = values if isinstance(values, tuple) else ()
    if not all(texts):
        msg = "the value is empty"
        raise ValueError(msg)
    return texts


def _set_custom_attributes(spec: jpsi.JobSpec, values: object) -> None:
    form = re.compile(r"[^.=]+\.[^=]+(=.*)?", re.DOTALL)
    for text in _require_form(values, form, "SYSTEM.NAME or SYSTEM.NAME=VALUE"):
        name, equals, value = text.partition("=")
        # an option without a value is True
        spec.attributes.set_custom_attribute(name, value if equals else True)


def _require_form(values: object, form: re.Pattern[str], words: str) -> tuple[str, ...]:
    texts: tuple[str, ...] = values if isinstance(values, tuple) else ()
    wrong = [text for text in texts if not form.fullmatch(text)]
    if wrong:
        msg = f"{', '.join(map(repr, wrong))} {'is' if len(wrong) == 1 else 'are'} not of the form {words}"
        raise ValueError(msg)
    return texts


_SIZES = ("memory", "mem_per_cpu", "mem_per_gpu")
_FIELDS: dict[str, Callable[[jpsi.JobSpec, object], None]] = {
    "name": _Text("name", str),
    "dir": _Text("directory", _directory),
    "create_dir": _flag("create_directory", value=True),
    "env": _set_environment,
    "setup": _set_up,
    "no_inherit_env": _flag("inherit_environment", value=False),
    "stdin": _Text("stdin_path", _stream),
    "stdout": _Text("stdout_path", _stream),
    "stderr": _Text("stderr_path", _stream),
    "stage_in": _stage_in,
    "stage_out": _stage_out,
    "cleanup": _set_cleanup,
    "nodes": _Text("node_count", quantities.parse_count, _resources),
    "processes": _Text("process_count", quantities.parse_count, _resources),
    "processes_per_node": _Text("processes_per_node", quantities.parse_count, _resources),
    "cores": _Text("cpu_cores_per_process", quantities.parse_count, _resources),
    "gpus": _Text("gpu_cores_per_process", quantities.parse_count_or_zero, _resources),
    "gpu_type": _Text("gpu_type", str, _attributes),
    "memory": _memory("memory"),
    "mem_per_cpu": _memory("memory_per_cpu"),
    "mem_per_gpu": _memory("memory_per_gpu"),
    "exclusive": _flag("exclusive_node_use", value=True, section=_resources),
    "time": _Text("duration", jpsi.parse_duration, _attributes),
    "t": _Text("duration", quantities.parse_slurm_time, _attributes),
    "warn": _Text("warn", _warning, _attributes),
    "retry": _set_retry,
    "grow": _set_growth,
    "queue": _Text("queue_name", str, _attributes),
    "project": _Text("project_name", str, _attributes),
    "reservation": _Text("reservation_id", str, _attributes),
    "licenses": _Text("licenses", str, _attributes),
    "container": _Text("image", str, _container),
    "bind": _set_binds,
    "container_runtime": _Text("runtime", str, _container),
    "qos": _Text("qos", str, _attributes),
    "mail": _Text("mail", str, _attributes),
    "launcher": _Text("launcher", str),
    "pre_launch": _Text("pre_launch", Path),
    "post_launch": _Text("post_launch", Path),
    "attribute": _set_custom_attributes,
}
