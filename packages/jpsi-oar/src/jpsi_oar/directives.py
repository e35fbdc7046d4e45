"""Renders a job spec into `#OAR` lines, and reads those of scripts that were written for `oarsub -S`.

`render_script` writes the directives of each job, of which `oarsub` makes arguments; `check_spec` reports
before that what no directive can express; `read_script` converts a script of a user into a job of jpsi.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from jpsi.plugin import (
    CustomOptions,
    Dependency,
    DependencyKind,
    ForeignScript,
    JobSpec,
    ResourceSpecV1,
    Script,
    Site,
    SubmitContext,
    hookimpl,
    kit,
    node_count,
    resources,
    units,
    walltime,
    word,
)

from .config import OarConfig

_SECOND = timedelta(seconds=1)
# oarsub(1), -l: hour:mn:sec, hour:mn or hour, after the last comma
_WALLTIME = re.compile(
    r"(?:(?P<hierarchy>.*),|)walltime=(?P<hours>\d+)(?::(?P<minutes>\d+))?(?::(?P<seconds>\d+))?"
)


def resource_problems(spec: JobSpec, config: OarConfig) -> Iterator[str]:
    """Yield why no tree expresses the resources of a spec, one sentence each."""
    requested = resources(spec)
    is_exclusive, gpus = requested.exclusive_node_use, requested.gpu_cores_per_process
    if requested.memory is not None and not is_exclusive:
        yield "resources.memory: OAR limits no memory; leave it out, or have whole nodes (exclusive_node_use)"
    if is_exclusive and node_count(requested) is None and requested.computed_process_count > 1:
        yield "resources.exclusive_node_use: OAR gives whole nodes by their number, so node_count is needed"
    if is_exclusive and gpus:
        yield "resources.gpu_cores_per_process: with exclusive_node_use, a job has all GPUs of its nodes"
    if gpus and config.gpu_resource is None:
        yield "GPUs: name the resource that counts them as `gpu_resource` in the executor's configuration"


def write_resources(request: kit.JobRequest, own: str | None) -> str | None:
    """Return the value of `-l`; `own` is what the user has set past jpsi, to which this is appended."""
    limit = walltime(request.spec, request.config, _SECOND)
    hours = "" if limit is None else f"walltime={limit // 3600}:{limit // 60 % 60}:{limit % 60}"
    if own is not None:
        return f",{hours}" if hours and "walltime" not in own else None
    asked = request.spec.resources
    hierarchy = "" if asked is None else _hierarchy(request.resources, request.config)
    return ",".join(filter(None, (hierarchy, hours))) or None


def _hierarchy(requested: ResourceSpecV1, config: OarConfig) -> str:
    """Return the tree of a job's nodes, GPUs and cores."""
    processes, nodes = requested.computed_process_count, node_count(requested)
    cores, gpus = requested.cpu_cores_per_process or 1, requested.gpu_cores_per_process or 0
    if requested.exclusive_node_use:
        return f"/{config.node_resource}={nodes or 1}"

    def leaves(count: int) -> str:
        if not gpus:
            return f"/{config.core_resource}={count * cores}"
        # below a GPU are the cores next to it
        per_gpu = requested.cpu_cores_per_process and f"/{config.core_resource}={units(cores, gpus)}"
        return f"/{config.gpu_resource}={count * gpus}{per_gpu or ''}"

    if nodes is not None:
        return f"/{config.node_resource}={nodes}{leaves(units(processes, nodes))}"
    if cores == 1 and gpus <= 1:
        return leaves(processes)
    # what a process needs is on one node
    return "+".join([f"/{config.node_resource}=1{leaves(1)}"] * processes)


def read_resources(draft: kit.Draft, value: str) -> None:
    """Read the walltime and a tree of nodes and cores; keep any other tree."""
    limit = _WALLTIME.fullmatch(value)
    hierarchy = value if limit is None else limit["hierarchy"] or ""
    if limit is not None:
        hours, minutes, seconds = (int(limit[it] or 0) for it in ("hours", "minutes", "seconds"))
        draft.attributes.duration = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    config = draft.config
    node = rf"(?:(?:{config.node_resource}|nodes|host|network_address)=(?P<nodes>[1-9]\d*))?"
    core = rf"(?:(?:{config.core_resource}|core)=(?P<cores>[1-9]\d*))?"
    tree = re.fullmatch(rf"/?{node}/?{core}", hierarchy)
    if tree is None:
        draft.keep("resource", hierarchy)
        return
    requested, cores = draft.resources, tree["cores"]
    if tree["nodes"]:
        requested.node_count = int(tree["nodes"])
        requested.processes_per_node = int(cores) if cores else None
        requested.exclusive_node_use = not cores
    elif cores:
        requested.process_count = int(cores)


# Of the 100 characters of a name in OAR's database, 51 are for the tag and a blank before it.
_LONGEST_NAME = 49
# With name, types and queue, it is part of a text for which OAR has 255 characters.
_LONGEST_PROJECT = 60
# OAR replaces these in paths
_path_pattern = re.compile(r"%")
_NUMBER = re.compile(r"[1-9][0-9]*")
_INNER = "inner="
# oarsub(1): --notify
_MAIL = {"begin": ["RUNNING"], "end": ["ERROR", "END"], "fail": ["ERROR"]}
_NOTIFICATION = re.compile(r"\[(?P<tags>[A-Z,]+)\]mail:(?P<address>.+)")
# oarsub reads the rest of the line as the value; only jpsi quotes it.
_DIRECTIVE = re.compile(r"^#OAR[ \t]+(--[a-z][a-z0-9-]*|-[A-Za-z])[ \t]*('?)(.*?)\2[ \t\r]*$", re.MULTILINE)
# oarsub(1) of 2.5.9, OPTIONS: those that it reads in scripts
_LONG = ("resource", "queue", "property", "type", "directory", "name", "anterior", "stdout", "stderr")
_LETTERS = dict(zip("lqptdnaOE", _LONG, strict=True))
_FLAGS = frozenset({"hold", "use-job-key"})
# Its further options
_OTHERS = (
    "array checkpoint export-job-key-to-file import-job-key-from-file import-job-key-inline notify project "
    "reservation signal"
)

#: oarsub(1) of 2.5.9, OPTIONS, by their long names.
CUSTOM = CustomOptions(
    systems=("oar",),
    name=r"[a-z]+(-[a-z0-9]+)*",
    example="checkpoint",
    refused={
        "name": "set JobSpec.name",
        "directory": "set JobSpec.directory",
        "queue": "set JobAttributes.queue_name",
        "project": "set JobAttributes.project_name",
        **dict.fromkeys(("stdout", "stderr"), "set JobSpec.stdout_path and stderr_path"),
        **dict.fromkeys(("stagein", "stagein-md5sum"), "set JobSpec.stage_in"),
        **dict.fromkeys(("array", "array-param-file"), "use submit_many"),
        **dict.fromkeys(("interactive", "scanscript"), "jpsi submits a command"),
        **dict.fromkeys(("dumper", "json", "xml", "yaml"), "jpsi reads the plain output"),
        **dict.fromkeys(("connect", "help", "resubmit", "version"), "it submits nothing"),
    },
    joined={"resource"},
    repeated={"type"},
    # An SQL condition needs quotes, which cannot stand in a directive.
    indirect={"property"},
    dependency="anterior",
    # oarsub accepts abbreviations of option names.
    abbreviated={"anterior", "notify", "resource", "type"},
)


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which OAR can never run this spec."""
    types = CUSTOM.of(spec).get("type", "none")
    named = [] if isinstance(types, str) and types.strip() else ["oar.type needs a type, such as besteffort"]
    return [*named, *resource_problems(spec, site.config), *_FORM.problems(spec, site)]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _FORM.render(spec, context)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """Return the job that the `#OAR` lines describe, anywhere in the script."""
    return _FORM.read(_DIRECTIVE.sub(lambda it: f"#OAR {it[1]} {word(it[3])}", text), site)


def _parse(words: Sequence[str]) -> Iterator[kit.ParsedOption]:
    option, value = [*words, ""][:2]
    name = option.removeprefix("--") if option.startswith("--") else _LETTERS.get(option[1:], option[1:])
    yield name, value or None if name in _FLAGS else value


def _write_name(request: kit.JobRequest) -> str:
    name = _short(request.spec.name, "the name", _LONGEST_NAME)
    return f"{name} {request.context.tag}" if name else request.context.tag


def _write_project(request: kit.JobRequest) -> str | None:
    return _short(request.spec.attributes.project_name, "attributes.project_name", _LONGEST_PROJECT)


def _short(text: str | None, what: str, longest: int) -> str | None:
    if text is not None and len(text) > longest:
        raise ValueError(f"{what} has {len(text)} characters, more than the {longest} for which OAR has room")
    return text


def _write_resources(request: kit.JobRequest) -> str | None:
    own = CUSTOM.of(request.spec).get("resource")
    return write_resources(request, None if own is None else str(own))


def _write_type(request: kit.JobRequest) -> str | None:
    """Return the type that puts a job into a container, which jpsi calls a reservation."""
    container = request.spec.attributes.reservation_id
    if container is None:
        return None
    if not _NUMBER.fullmatch(container):
        msg = f"attributes.reservation_id must be the number of a container job, not {container!r}"
        raise ValueError(msg)
    return f"{_INNER}{container}"


def _read_types(draft: kit.Draft, value: str) -> None:
    types = split_types(value)
    inner = [it.removeprefix(_INNER) for it in types if it.startswith(_INNER)]
    draft.attributes.reservation_id = inner[0] if inner else None
    if others := " ".join(it for it in types if not it.startswith(_INNER)):
        draft.keep("type", others)


def split_types(value: str) -> list[str]:
    """Return the types in a value of `type`, which blanks separate; a date may have a blank, too.

    >>> split_types("besteffort deadline=2026-12-01 10:00:00 idempotent")
    ['besteffort', 'deadline=2026-12-01 10:00:00', 'idempotent']
    """
    return re.split(r" +(?=[A-Za-z])", value.strip())


def _write_notification(request: kit.JobRequest) -> str | None:
    tags, address = kit.write_mail(request, _MAIL), request.spec.attributes.mail_request()[1]
    return address and f"[{','.join(tags)}]mail:{address}"


def _read_notification(draft: kit.Draft, value: str) -> None:
    match = _NOTIFICATION.fullmatch(value)
    if match is None:
        raise ValueError("jpsi knows mail of certain events, and no other notification")
    kit.read_mail(draft, match["address"], match["tags"].split(","), _MAIL)


def _write_anterior(request: kit.JobRequest) -> tuple[str, ...]:
    ids = tuple(str(it.job) for it in request.context.after)
    if element := next((it for it in ids if "." in it), None):
        msg = f"attributes.after: OAR has another number for {element}, so that no job can wait for it alone"
        raise ValueError(msg)
    return ids


def _read_anterior(draft: kit.Draft, value: str) -> None:
    draft.attributes.after = [Dependency(it, DependencyKind.ANY) for it in value.split()]


def _read_array(draft: kit.Draft, value: str) -> None:
    kit.array_reader("OAR_ARRAY_INDEX")(draft, f"1-{kit.read_count(value)}")


def _path_option(field: str, path: str) -> kit.Option:
    return kit.Option(path, kit.path_reader(field, lambda value: kit.read_path(value, _path_pattern)))


_FORM = kit.ScriptForm(
    mark="#OAR",
    known=frozenset({*_LONG, *_FLAGS, *_OTHERS.split(), *CUSTOM.refused}),
    # oarsub(1): environment variables
    directory_variables=("OAR_O_WORKDIR", "OAR_WORKDIR", "OAR_WORKING_DIRECTORY"),
    variables=r"OAR_\w+",
    is_read_whole=True,
    joint=" ",
    custom=CUSTOM,
    parse=_parse,
    joints={"type": " ", "anterior": " "},
    options={
        "name": kit.Option(_write_name, kit.read_name),
        "directory": _path_option("directory", "/"),
        "stdout": _path_option("stdout_path", "/dev/null"),
        "stderr": _path_option("stderr_path", "/dev/null"),
        "resource": kit.Option(_write_resources, read_resources),
        "queue": kit.attribute_option("queue_name"),
        "project": kit.Option(
            _write_project, kit.attribute_option("project_name").read, expresses=("project_name",)
        ),
        "notify": kit.Option(_write_notification, _read_notification, expresses=("mail",)),
        "type": kit.Option(_write_type, _read_types, expresses=("reservation_id",)),
        "anterior": kit.Option(_write_anterior, _read_anterior),
        "array": kit.Option(lambda it: it.context.elements, _read_array),
    },
)
