"""What a job asks of LSF: the `#BSUB` lines for a spec, and what in a spec no such line can say."""

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
# What -J cannot say: what no directive can, a bracket, which makes an array, and what is misread
_ILLEGAL = re.compile(r"[^\x20-\x7e\u00a0-\U0010ffff]|[\[\]'\"\\`$\u2028\u2029]|\A[ #]|(?<= ) | \Z")
# Measured on volclava 2.2, in bytes; LSF 10.1 takes more
_LONGEST_NAME = 254
# More of a name that had to be changed is not kept.
_LONGEST_KEPT = 1000
# Measured on volclava 2.2, which reads directives word by word
_MISREAD = re.compile(r"\A[ #]|  | \Z|\A\Z")
# lsb.queues of LSF 10.1, QUEUE_NAME; mbatchd of volclava 2.2 breaks the connection over longer ones
_LONGEST_QUEUE = 59
# The finest that -W can say
_MINUTE = timedelta(minutes=1)
#: bsub of LSF 10.1, -w: dependency conditions.
DEPENDENCIES: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "done",
    DependencyKind.ANY: "ended",
    DependencyKind.NOTOK: "exit",
}


def _spelled(option: str, value: str | None) -> tuple[str, str | None]:
    """An option and its value, unless LSF takes that for another, quoted or not, with all that follows."""
    if value is not None and _MISREAD.search(value):
        msg = (
            f"-{option} cannot be {value!r}: LSF takes # at the beginning for a comment, "
            "drops blanks at both ends, and makes one of several"
        )
        raise ValueError(msg)
    return option, value


# bsub of LSF 10.1, -J and -Jd: the longest values
_FORM = ScriptForm(mark="#BSUB", dashes="-", joint=" ", longest=4094, custom=CUSTOM, spelled=_spelled)
# For slots of several kinds
_FORM_OF_SEVERAL = attrs.evolve(_FORM, custom=OF_SEVERAL_KINDS)


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Why LSF can never be asked for this."""
    return [
        *_queue_problems(attributes(spec).queue_name),
        *resource_problems(spec, site.config),
        *_form(spec).problems(spec, site, _options),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """The directives for a spec."""
    return _form(spec).script(spec, context, _options)


def _form(spec: JobSpec) -> ScriptForm:
    return _FORM if len(components(spec.resources)) == 1 else _FORM_OF_SEVERAL


def _queue_problems(queues: str | None) -> Iterator[str]:
    if any(len(queue) > _LONGEST_QUEUE for queue in (queues or "").replace("@", " ").split()):
        yield f"attributes.queue_name: no queue of LSF has a name of more than {_LONGEST_QUEUE} characters"


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """The options of bsub."""
    asked, config = attributes(spec), context.site.config
    return {
        **_named(spec.name or _DEFAULT_NAME, context.tag, _array(context)),
        # The runner opens the job's streams. Without a file LSF mails them, with one it adds a report, and
        # a directory that is not there is told by nothing.
        "o": "/dev/null",
        "e": "/dev/null",
        **{option: getattr(asked, field) for option, field in NAMES.items()},
        # none leaves the queue's own limit
        "W": time_limit(spec, config, _MINUTE),
        **resource_options(spec, config, required_of_each(spec)),
        "r": config.rerunnable,
        **_after(context.after),
    }


def legal_name(name: str, longest: int = _LONGEST_NAME) -> str:
    """The name that LSF is told, of so many bytes at most.

    >>> legal_name("it's x[1]")
    'it_s x_1_'
    """
    return _ILLEGAL.sub("_", name.encode(errors="replace")[:longest].decode(errors="ignore"))


def _array(context: SubmitContext) -> str:
    """What makes the name that of an array: its indices, and how many elements may run at a time."""
    indices = "" if context.elements is None else f"[1-{context.elements}]"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"


def _named(name: str, tag: str, array: str) -> Options:
    """The name, made legal, and the tag; before that the name as in a URL, if it had to be changed."""
    legal = legal_name(name, _LONGEST_NAME - len(array))
    kept = "" if legal == name else quote(name, safe="", errors="replace")[:_LONGEST_KEPT]
    return {"J": f"{legal}{array}", "Jd": f"{kept} {tag}".lstrip()}


def _after(after: Iterable[Dependency]) -> Options:
    """The options for these dependencies; all of them must be satisfied."""
    conditions = [f"{DEPENDENCIES[it.kind]}({it.native_id})" for it in after]
    # Without the second, a job whose condition cannot be satisfied any more stays pending for ever.
    return {"w": " && ".join(conditions), "ti": True} if conditions else {}
