"""Renders a job spec into `#flux:` lines, and reads those of scripts that were written for `flux batch`.

`render_script` writes the script of each job; `check_spec` reports before that what no directive can express;
`read_script` converts a script of a user into a job of jpsi.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from jpsi.plugin import (
    CustomOptions,
    ForeignScript,
    JobAttributes,
    JobSpec,
    Script,
    Site,
    SubmitContext,
    hookimpl,
    kit,
    parse_duration,
    resources,
    walltime,
)

from .shape import Shape

_SECOND = timedelta(seconds=1)
_RESOURCES = "say it in JobSpec.resources"
_STREAMS = "set JobSpec.stdin_path, stdout_path and stderr_path"
_WAITS = "the submission would not return before the job has ended; use Job.wait"

# flux-submit(1) and flux-batch(1), OPTIONS, by their long names.
_CUSTOM = CustomOptions(
    systems=("flux",),
    name=r"[a-z][a-z0-9]+(-[a-z0-9]+)*",
    example="requires",
    refused={
        **dict.fromkeys(("cores", "cores-per-slot", "cores-per-task", "exclusive", "nodes"), _RESOURCES),
        **dict.fromkeys(("gpus-per-node", "gpus-per-slot", "gpus-per-task"), _RESOURCES),
        **dict.fromkeys(("nslots", "ntasks", "tasks-per-core", "tasks-per-node"), _RESOURCES),
        **dict.fromkeys(("error", "input", "output"), _STREAMS),
        **dict.fromkeys(("env", "env-file", "env-remove"), "set JobSpec.environment and inherit_environment"),
        **dict.fromkeys(("dry-run", "help", "list-plugins"), "it submits nothing"),
        **dict.fromkeys(("wait", "wait-event", "watch"), _WAITS),
        **dict.fromkeys(("bcc", "cc"), "jpsi counts one submission as one job; use submit_many"),
        "queue": "set JobAttributes.queue_name",
        **dict.fromkeys(("log", "quiet"), "the submission would not print the job's id"),
        "log-stderr": "the submission would not print its errors",
        "bank": "set JobAttributes.project_name",
        "cwd": "set JobSpec.directory",
        "job-name": "set JobSpec.name",
        "time-limit": "set JobAttributes.duration",
        "wrap": "the job's command is JobSpec.executable",
    },
    repeated={"dependency", "setattr"},
    # Flux 0.58 accepts abbreviations of option names.
    abbreviated=(),
)
# flux-batch(1), OPTIONS: the short options
_LETTERS = dict(
    pair.split("=")
    for pair in (
        *("B=bank", "N=nodes", "S=setattr", "c=cores-per-slot", "g=gpus-per-slot", "l=label-io"),
        *("n=nslots", "o=setopt", "q=queue", "t=time-limit", "u=unbuffered", "v=verbose", "x=exclusive"),
    )
)
_FLAGS = frozenset(
    {"debug", "dry-run", "exclusive", "label-io", "quiet", "unbuffered", "verbose", "wait", "watch", "wrap"}
)
# flux-batch(1) and flux-submit(1): further options, of any version
_OTHERS = (
    "add-file begin-time broker-opts conf dump flags jps progress requires resume rlimit setopt signal "
    "taskmap urgency"
)
# flux-batch(1): mustache templates, which Flux replaces
_path = partial(kit.read_path, patterns=re.compile(r"\{\{"))
# RFC 23: a number without a unit is seconds, but minutes for --time-limit
_MINUTES = re.compile(r"[0-9]+")
# a separator that no option contains
_LINE = "\n"
_BANK = ("bank", "system.bank")


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which Flux can never run this spec."""
    return [
        *_attribute_problems(spec.attributes),
        *_resource_problems(spec),
        *_FORM.problems(spec, site),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _FORM.render(spec, context)


@hookimpl
def read_script(text: str) -> ForeignScript:
    """Return the job that the `# flux:` lines before the first command describe."""
    return _FORM.read(text)


def _attribute_problems(requested: JobAttributes) -> Iterator[str]:
    if requested.project_name and not _is_text(requested.project_name):
        yield (
            f"attributes.project_name: Flux would read {requested.project_name!r} as a JSON value "
            "and not as the name of a bank"
        )


def _is_text(value: str) -> bool:
    """Return True if `--setattr` takes a value as text: it parses everything that is valid JSON."""
    try:
        json.loads(value)
    except ValueError:
        return True
    return False


def _resource_problems(spec: JobSpec) -> Iterator[str]:
    shape = Shape.for_spec(spec)
    if shape.exclusive and shape.nodes is None and shape.slots > 1:
        yield "resources.exclusive_node_use: Flux gives whole nodes by their number, so node_count is needed"
    if resources(spec).memory is not None and not shape.exclusive:
        yield (
            "resources.memory: Flux has no option for memory; leave it out, or have whole nodes "
            "with exclusive_node_use"
        )


def _write_limit(request: kit.JobRequest) -> str | None:
    limit = walltime(request.spec, request.config, _SECOND)
    # without a unit Flux takes the number as minutes
    return None if limit is None else f"{limit}s"


def _read_limit(draft: kit.Draft, value: str) -> None:
    draft.attributes.duration = parse_duration(f"{value}m" if _MINUTES.fullmatch(value) else value)


def _read_variables(draft: kit.Draft, value: str) -> None:
    for rule in value.split(_LINE):
        name, separator, text = rule.partition("=")
        if not separator or not name.isidentifier():
            draft.lose("env", rule, "the job has the whole environment")
        else:
            draft.set_variable(name, text)


def _write_attribute(request: kit.JobRequest) -> str | None:
    bank = request.spec.attributes.project_name
    # Flux < 0.65 has no --bank
    return None if bank is None else f"bank={bank}"


def _read_attribute(draft: kit.Draft, value: str) -> None:
    kept = []
    for item in value.split(_LINE):
        name, _, text = item.partition("=")
        if name in _BANK and text:
            draft.attributes.project_name = text
        else:
            kept.append(item)
    for item in kept[:1]:
        draft.keep("setattr", item)
    for item in kept[1:]:
        draft.lose("setattr", item, "one of them can be carried over")


def _slot_options(unit: str, *, nested: bool) -> dict[str, kit.Option]:
    """Return the options for slots, of flux-batch(1) if nested, else of flux-submit(1)."""

    def option(field: str, of_shape: str) -> kit.Option:
        def write(request: kit.JobRequest) -> int | None:
            shape = Shape.for_spec(request.spec)
            number: int | None = getattr(shape, of_shape) if shape.nested == nested else None
            return number

        return kit.count_option(field, write)

    return {
        f"n{unit}s": option("process_count", "slots"),
        f"cores-per-{unit}": option("cpu_cores_per_process", "cores"),
        f"gpus-per-{unit}": option("gpu_cores_per_process", "gpus"),
    }


def _write_nodes(request: kit.JobRequest) -> int | None:
    shape = Shape.for_spec(request.spec)
    # Flux grants exclusive use only together with a number of nodes; one process needs one node.
    return 1 if shape.exclusive and shape.slots == 1 else shape.nodes


# flux-batch(1) and flux-submit(1), OPTIONS, in the order in which they are written and read; all others
# become custom attributes or are not supported by jpsi.
_OPTIONS = {
    # jpsi finds a job only by its name: Flux does not list attributes, and users cannot set other fields.
    "job-name": kit.Option(
        lambda it: f"{it.spec.name} {it.context.tag}" if it.spec.name else it.context.tag, kit.read_name
    ),
    # The runner changes to the directory and opens the streams. If the directory is missing, Flux runs the
    # job in another one and calls it COMPLETED; a file that it cannot open ends the job before it starts.
    "cwd": kit.Option("/", kit.path_reader("directory", _path)),
    "input": kit.Option(None, kit.path_reader("stdin_path", _path)),
    "output": kit.Option("/dev/null", kit.output_reader(_path, lambda draft: "error" not in draft.options)),
    "error": kit.Option(None, kit.path_reader("stderr_path", _path)),
    "env": kit.Option(None, _read_variables),
    "queue": kit.attribute_option("queue_name"),
    "bank": kit.Option(None, kit.attribute_option("project_name").read),
    "setattr": kit.Option(_write_attribute, _read_attribute, expresses=("project_name",)),
    "time-limit": kit.Option(_write_limit, _read_limit),
    "nodes": kit.count_option("node_count", _write_nodes),
    **_slot_options("slot", nested=True),
    **_slot_options("task", nested=False),
    "exclusive": kit.Option(lambda it: it.resources.exclusive_node_use, kit.read_exclusive),
    # All dependencies must be satisfied.
    "dependency": kit.Option(
        lambda it: tuple(f"after{after.kind.value}:{after.native_id}" for after in it.context.after),
        kit.dependencies_reader("(?P<word>[^:]*):(?P<ids>.+)", _LINE),
    ),
    **dict.fromkeys(("label-io", "quiet", "unbuffered", "verbose"), kit.Option(None, kit.ignore_option)),
}
_KNOWN = frozenset({*_LETTERS.values(), *_FLAGS, *_OPTIONS, *_CUSTOM.refused, *_OTHERS.split()})
_FORM = kit.ScriptForm(
    mark="#flux:",
    # RFC 36: the sentinel, after the characters that make the line a comment
    foreign_mark=r"[^\w\s]+\s*(?:flux|FLUX):",
    # flux-environment(7), the manual page
    variables=r"FLUX_\w+",
    options=_OPTIONS,
    known=_KNOWN,
    custom=_CUSTOM,
    parse=partial(kit.gnu_options, letters=_LETTERS, plain=_FLAGS, names=_KNOWN),
    missing={"reservation_id": "Flux has no reservations that a job could name"},
    joints=dict.fromkeys(("dependency", "env", "setattr"), _LINE),
)
