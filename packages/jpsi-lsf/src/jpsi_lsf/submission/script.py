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

from ..options import CUSTOM, NAMES, OF_SEVERAL_KINDS, required_of_each
from .resources import resource_options, resource_problems

_DEFAULT_NAME = "jpsi"
# Characters that -J cannot express: those of no directive, brackets, which make an array, and misread ones
_ILLEGAL = re.compile(r"[^\x20-\x7e\u00a0-\U0010ffff]|[\[\]'\"\\`$\u2028\u2029]|\A[ #]|(?<= ) | \Z")
# Measured on volclava 2.2, in bytes; LSF 10.1 accepts more
_LONGEST_NAME = 254
# The longest part of an illegal name that is kept in the description.
_LONGEST_KEPT = 1000
# Measured on volclava 2.2, which reads directives word by word
_MISREAD = re.compile(r"\A[ #]|  | \Z|\A\Z")
# lsb.queues of LSF 10.1, QUEUE_NAME; mbatchd of volclava 2.2 closes the connection for longer names
_LONGEST_QUEUE = 59
# The resolution of -W
_MINUTE = timedelta(minutes=1)
#: bsub of LSF 10.1, -w: dependency conditions.
DEPENDENCIES: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "done",
    DependencyKind.ANY: "ended",
    DependencyKind.NOTOK: "exit",
}


def _spelled(option: str, value: str | None) -> tuple[str, str | None]:
    """Return an option and its value; raise ValueError if LSF would misread the value, quoted or not."""
    if value is not None and _MISREAD.search(value):
        msg = (
            f"-{option} cannot be {value!r}: LSF takes # at the beginning for a comment, "
            "drops blanks at both ends, and makes one of several"
        )
        raise ValueError(msg)
    return option, value


# bsub of LSF 10.1, -J and -Jd: the longest values
_FORM = ScriptForm(mark="#BSUB", dashes="-", joint=" ", longest=4094, custom=CUSTOM, spelled=_spelled)
# For jobs with several components
_FORM_OF_SEVERAL = attrs.evolve(_FORM, custom=OF_SEVERAL_KINDS)


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which LSF can never run this spec."""
    return [
        *_queue_problems(attributes(spec).queue_name),
        *resource_problems(spec, site.config),
        *_form(spec).problems(spec, site, _options),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _form(spec).render(spec, context, _options)


def _form(spec: JobSpec) -> ScriptForm:
    return _FORM if len(components(spec.resources)) == 1 else _FORM_OF_SEVERAL


def _queue_problems(queues: str | None) -> Iterator[str]:
    if any(len(queue) > _LONGEST_QUEUE for queue in (queues or "").replace("@", " ").split()):
        yield f"attributes.queue_name: no queue of LSF has a name of more than {_LONGEST_QUEUE} characters"


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """Return the bsub options for a job."""
    asked, config = attributes(spec), context.site.config
    return {
        **_named(spec.name or _DEFAULT_NAME, context.tag, _array(context)),
        # The runner opens the job's streams. Without a file LSF mails them, with a file it appends a report,
        # and it does not report a missing directory.
        "o": "/dev/null",
        "e": "/dev/null",
        **{option: getattr(asked, field) for option, field in NAMES.items()},
        # without -W the queue's own limit applies
        "W": time_limit(spec, config, _MINUTE),
        **resource_options(spec, config, required_of_each(spec)),
        "r": config.rerunnable,
        **_after(context.after),
    }


def legal_name(name: str, longest: int = _LONGEST_NAME) -> str:
    """Return the name with illegal characters replaced, cut to at most `longest` bytes.

    >>> legal_name("it's x[1]")
    'it_s x_1_'
    """
    return _ILLEGAL.sub("_", name.encode(errors="replace")[:longest].decode(errors="ignore"))


def _array(context: SubmitContext) -> str:
    """Return the suffix that makes an array of a job: the indices, and the limit of running elements."""
    indices = "" if context.elements is None else f"[1-{context.elements}]"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"


def _named(name: str, tag: str, array: str) -> Options:
    """Return the legal name, and the description: the tag, after the URL-encoded name if that was illegal."""
    legal = legal_name(name, _LONGEST_NAME - len(array))
    kept = "" if legal == name else quote(name, safe="", errors="replace")[:_LONGEST_KEPT]
    return {"J": f"{legal}{array}", "Jd": f"{kept} {tag}".lstrip()}


def _after(after: Iterable[Dependency]) -> Options:
    """Return the options for these dependencies, all of which must be satisfied."""
    conditions = [f"{DEPENDENCIES[it.kind]}({it.native_id})" for it in after]
    # Without the second option, a job whose condition can no longer be satisfied stays pending for ever.
    return {"w": " && ".join(conditions), "ti": True} if conditions else {}
