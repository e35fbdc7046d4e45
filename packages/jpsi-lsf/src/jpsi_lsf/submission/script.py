"""Renders a job spec into `#BSUB` lines, and checks that LSF can express it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from urllib.parse import quote

import attrs

from jpsi.plugin import (
    Dependency,
    DependencyKind,
    JobSpec,
    Options,
    Script,
    Site,
    SubmitContext,
    attributes,
    components,
    hookimpl,
    time_limit,
)
from jpsi.plugin.kit import ScriptForm

from ..bsub_options import ATTRIBUTE_OPTIONS, COMPONENT_OPTIONS, CUSTOM, component_requirements
from .resources import resource_options, resource_problems

_DEFAULT_NAME = "jpsi"
# Characters that -J cannot express: those of no directive, brackets, which make an array, and misread ones
_ILLEGAL_CHARACTERS = re.compile(
    r"[^\x20-\x7e\u00a0-\U0010ffff]|[\[\]'\"\\`$\u2028\u2029]|\A[ #]|(?<= ) | \Z"
)
# Measured on volclava 2.2, in bytes; LSF 10.1 accepts more
_MAX_NAME = 254
# The longest part of an illegal name that is kept in the description.
_MAX_QUOTED_NAME = 1000
# Measured on volclava 2.2, which reads directives word by word
_MISREAD = re.compile(r"\A[ #]|  | \Z|\A\Z")
# lsb.queues of LSF 10.1, QUEUE_NAME; mbatchd of volclava 2.2 closes the connection for longer names
_MAX_QUEUE_NAME = 59
# The resolution of -W
_MINUTE = timedelta(minutes=1)
#: bsub of LSF 10.1, -w: dependency conditions.
DEPENDENCIES: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "done",
    DependencyKind.ANY: "ended",
    DependencyKind.NOTOK: "exit",
}


def _check_value(option: str, value: str | None) -> tuple[str, str | None]:
    """Return an option and its value; raise ValueError if LSF would misread the value, quoted or not."""
    if value is not None and _MISREAD.search(value):
        msg = (
            f"-{option} cannot be {value!r}: LSF takes # at the beginning for a comment, "
            "drops blanks at both ends, and makes one of several"
        )
        raise ValueError(msg)
    return option, value


# bsub of LSF 10.1, -J and -Jd: the longest values
_FORM = ScriptForm(mark="#BSUB", dashes="-", joint=" ", longest=4094, custom=CUSTOM, spelled=_check_value)
# For jobs with several components
_COMPONENT_FORM = attrs.evolve(_FORM, custom=COMPONENT_OPTIONS)


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which LSF can never run this spec."""
    return [
        *_queue_problems(attributes(spec).queue_name),
        *resource_problems(spec, site.config),
        *_script_form(spec).problems(spec, site, _options),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _script_form(spec).render(spec, context, _options)


def _script_form(spec: JobSpec) -> ScriptForm:
    return _FORM if len(components(spec.resources)) == 1 else _COMPONENT_FORM


def _queue_problems(queues: str | None) -> Iterator[str]:
    if any(len(queue) > _MAX_QUEUE_NAME for queue in (queues or "").replace("@", " ").split()):
        yield f"attributes.queue_name: no queue of LSF has a name of more than {_MAX_QUEUE_NAME} characters"


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """Return the bsub options for a job."""
    requested, config = attributes(spec), context.site.config
    return {
        **_name_options(spec.name or _DEFAULT_NAME, context.tag, _array_suffix(context)),
        # The runner opens the job's streams. Without a file LSF mails them, with a file it appends a report,
        # and it does not report a missing directory.
        "o": "/dev/null",
        "e": "/dev/null",
        **{option: getattr(requested, field) for option, field in ATTRIBUTE_OPTIONS.items()},
        # without -W the queue's own limit applies
        "W": time_limit(spec, config, _MINUTE),
        **resource_options(spec, config, component_requirements(spec)),
        "r": config.rerunnable,
        **_dependency_options(context.after),
    }


def legal_name(name: str, longest: int = _MAX_NAME) -> str:
    """Return the name with illegal characters replaced, cut to at most `longest` bytes.

    >>> legal_name("it's x[1]")
    'it_s x_1_'
    """
    return _ILLEGAL_CHARACTERS.sub("_", name.encode(errors="replace")[:longest].decode(errors="ignore"))


def _array_suffix(context: SubmitContext) -> str:
    """Return the suffix that makes an array of a job: the indices, and the limit of running elements."""
    indices = "" if context.elements is None else f"[1-{context.elements}]"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"


def _name_options(name: str, tag: str, array: str) -> Options:
    """Return the legal name, and the description: the tag, after the URL-encoded name if that was illegal."""
    legal = legal_name(name, _MAX_NAME - len(array))
    quoted = "" if legal == name else quote(name, safe="", errors="replace")[:_MAX_QUOTED_NAME]
    return {"J": f"{legal}{array}", "Jd": f"{quoted} {tag}".lstrip()}


def _dependency_options(after: Iterable[Dependency]) -> Options:
    """Return the options for these dependencies, all of which must be satisfied."""
    conditions = [f"{DEPENDENCIES[dependency.kind]}({dependency.native_id})" for dependency in after]
    # Without the second option, a job whose condition can no longer be satisfied stays pending for ever.
    return {"w": " && ".join(conditions), "ti": True} if conditions else {}
