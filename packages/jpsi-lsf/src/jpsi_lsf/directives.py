"""Renders a job spec into `#BSUB` lines, and reads those of scripts that were written for bsub.

`render_script` writes the script of each job; `check_spec` reports before that what no directive can express;
`read_script` converts a script of a user into a job of jpsi.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from urllib.parse import quote

import attrs

from jpsi.plugin import (
    DependencyKind,
    ForeignScript,
    JobSpec,
    Script,
    Site,
    SubmitContext,
    components,
    hookimpl,
    kit,
)

from .custom_options import COMPONENT_OPTIONS, CUSTOM
from .resources import RESOURCE_OPTIONS, resource_problems

#: The variables that tell an element how its array is numbered, as LSF sets them.
ARRAY_RANGE = (("LSB_JOBINDEX_END", "JPSI_ARRAY_MAX"), ("LSB_JOBINDEX_STEP", "JPSI_ARRAY_STEP"))

#: LSF counts run limits in minutes.
WALLTIME_UNIT = timedelta(minutes=1)
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
#: bsub of LSF 10.1, -w: dependency conditions.
DEPENDENCIES: Mapping[DependencyKind, str] = {
    DependencyKind.OK: "done",
    DependencyKind.ANY: "ended",
    DependencyKind.NOTOK: "exit",
}
# bsub of LSF 10.1: the options with a value
_VALUED = (
    *("C", "D", "E", "Ep", "F", "G", "J", "Jd", "L", "Lp", "M", "P", "Q", "R", "S", "T", "U", "W", "We"),
    *("a", "alloc_flags", "app", "b", "c", "clusters", "cn_cu", "cn_mem", "core_isolation", "csm", "cwd"),
    *("data", "datagrp", "e", "env", "eo", "eptl", "ext", "extsched", "f", "freq", "g", "gpu", "hostfile"),
    *("i", "is", "jobaff", "json", "jsdl", "jsdl_strict", "jsm", "k", "ln_mem", "ln_slots", "m", "mig", "n"),
    *("network", "nnodes", "notify", "o", "oo", "outdir", "p", "pack", "ptl", "q", "rcacct", "rnc", "s"),
    *("sla", "smt", "sp", "stage", "step_cgroup", "t", "u", "v", "w", "wa", "wt", "yaml"),
)
# bsub of LSF 10.1: the options without a value
_FLAGS = (
    *("B", "H", "I", "IS", "ISp", "ISs", "IX", "Ip", "Is", "K", "N", "Ne", "V", "XF", "Zs", "ar", "datachk"),
    *("h", "hl", "nodata", "r", "rn", "ti", "tty", "ul", "x"),
)
# bsub of LSF 10.1: the options for the events of mail
_MAIL = {"begin": ["B"], "end": ["N"], "fail": ["Ne"]}
_ARRAY = re.compile(r"(?P<name>[^\[]*)\[(?P<indices>.*)\](?P<limit>%[0-9]+)?")
# bsub of LSF 10.1, -W: minutes, or hours and minutes; other forms refer to a certain host
_LIMIT = re.compile(r"(?:(?P<hours>[0-9]+):)?(?P<minutes>[0-9]+)")
_path = partial(kit.read_path, patterns=re.compile(r"%|/\Z"))


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which LSF can never run this spec."""
    return [
        *_queue_problems(spec.attributes.queue_name),
        *resource_problems(spec, site.config),
        *_script_form(spec).problems(spec, site),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _script_form(spec).render(spec, context)


@hookimpl
def read_script(text: str, site: Site) -> ForeignScript:
    """Return the job that the `#BSUB` lines describe, anywhere in the script."""
    return _FORM.read(text, site)


def _script_form(spec: JobSpec) -> kit.ScriptForm:
    return _FORM if len(components(spec.resources)) == 1 else _COMPONENT_FORM


def _queue_problems(queues: str | None) -> Iterator[str]:
    if any(len(queue) > _MAX_QUEUE_NAME for queue in (queues or "").replace("@", " ").split()):
        yield f"attributes.queue_name: no queue of LSF has a name of more than {_MAX_QUEUE_NAME} characters"


def _check_value(option: str, value: str | None) -> tuple[str, str | None]:
    """Return an option and its value; raise ValueError if LSF would misread the value, quoted or not."""
    if value is not None and _MISREAD.search(value):
        raise ValueError(
            f"-{option} cannot be {value!r}: LSF takes # at the beginning for a comment, "
            "drops blanks at both ends, and makes one of several"
        )
    return option, value


def legal_name(name: str, longest: int = _MAX_NAME) -> str:
    """Return the name with illegal characters replaced, cut to at most `longest` bytes.

    >>> legal_name("it's x[1]")
    'it_s x_1_'
    """
    return _ILLEGAL_CHARACTERS.sub("_", name.encode(errors="replace")[:longest].decode(errors="ignore"))


def _write_name(request: kit.JobRequest) -> str:
    array = _array_suffix(request.context)
    return f"{legal_name(request.spec.name or _DEFAULT_NAME, _MAX_NAME - len(array))}{array}"


def _write_description(request: kit.JobRequest) -> str:
    """Return the tag, after the URL-encoded name if that is illegal."""
    name, array = request.spec.name or _DEFAULT_NAME, _array_suffix(request.context)
    is_legal = legal_name(name, _MAX_NAME - len(array)) == name
    quoted = "" if is_legal else quote(name, safe="", errors="replace")[:_MAX_QUOTED_NAME]
    return f"{quoted} {request.context.tag}".lstrip()


def _array_suffix(context: SubmitContext) -> str:
    """Return the suffix that makes an array of a job: the indices, and the limit of running elements."""
    indices = "" if context.elements is None else f"[1-{context.elements}]"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"


def _read_name(draft: kit.Draft, value: str) -> None:
    array = _ARRAY.fullmatch(value)
    if array is not None:
        read = kit.array_reader("LSB_JOBINDEX", range_variables=ARRAY_RANGE)
        read(draft, f"{array['indices']}{array['limit'] or ''}")
    draft.spec.name = (value if array is None else array["name"]) or None


def _parse_limit(value: str) -> timedelta:
    match = _LIMIT.fullmatch(value)
    if match is None:
        raise ValueError("jpsi cannot express it")
    return timedelta(hours=int(match["hours"] or 0), minutes=int(match["minutes"]))


def _read_environment(draft: kit.Draft, value: str) -> None:
    kit.variables_reader(r"\s*,\s*")(draft, value.strip())
    if "all" not in map(str.strip, value.split(",")):
        draft.lose("env", value, "the job has the whole environment")


def _mail_flag(flag: str) -> kit.Option:
    """Return the option for one event of the mail."""

    def read(draft: kit.Draft, _value: str) -> None:
        if draft.attributes.mail is None:
            raise ValueError("jpsi sends mail to an address, and -u names none")

    return kit.Option(lambda it: flag in kit.write_mail(it, _MAIL), read)


def _read_mail(draft: kit.Draft, value: str) -> None:
    kit.read_mail(
        draft, value, [flag for it in _MAIL.values() for flag in it if flag in draft.options], _MAIL
    )


def _write_dependencies(request: kit.JobRequest) -> str | None:
    """Return the dependencies, all of which must be satisfied."""
    return " && ".join(f"{DEPENDENCIES[it.kind]}({it.native_id})" for it in request.context.after) or None


_NO_FILE = "/dev/null"
_INPUT = kit.Option(None, kit.path_reader("stdin_path", _path))
_read_output = kit.output_reader(_path, lambda draft: not draft.options.keys() & {"e", "eo"})


_read_error = kit.path_reader("stderr_path", _path)


def _appended(flag: str, read_file: kit.Reader) -> kit.Reader:
    """Return a reader for an option whose file LSF appends to."""

    def read(draft: kit.Draft, value: str) -> None:
        read_file(draft, value)
        if value != _NO_FILE:
            why = f"LSF appends to the file, and jpsi's script empties it first, as with -{flag}o"
            draft.lose(flag, value, why)

    return read


# bsub of LSF 10.1, in the order in which the options are written
_OPTIONS = {
    "J": kit.Option(_write_name, _read_name),
    "Jd": kit.Option(_write_description),
    "cwd": kit.Option(None, kit.path_reader("directory", _path)),
    "i": _INPUT,
    "is": _INPUT,
    # The runner opens the job's streams. Without a file LSF mails them, with a file it appends a report,
    # and it does not report a missing directory.
    "o": kit.Option(_NO_FILE, _appended("o", _read_output)),
    "oo": kit.Option(None, _read_output),
    "e": kit.Option(_NO_FILE, _appended("e", _read_error)),
    "eo": kit.Option(None, _read_error),
    "env": kit.Option(None, _read_environment),
    "q": kit.attribute_option("queue_name"),
    "P": kit.attribute_option("project_name"),
    "U": kit.attribute_option("reservation_id"),
    # service classes
    "sla": kit.attribute_option("qos"),
    "u": kit.Option(lambda it: it.spec.attributes.mail_request()[1], _read_mail, expresses=("mail",)),
    **{flag: _mail_flag(flag) for words in _MAIL.values() for flag in words},
    # without -W the queue's own limit applies
    "W": kit.duration_option(WALLTIME_UNIT, _parse_limit),
    **RESOURCE_OPTIONS,
    "r": kit.Option(lambda it: it.config.rerunnable),
    "w": kit.Option(
        _write_dependencies, kit.dependencies_reader(r"(?P<word>\w+)\((?P<ids>[0-9]+)\)", "&&", DEPENDENCIES)
    ),
    # Otherwise a job whose condition can no longer be satisfied stays pending for ever.
    "ti": kit.Option(lambda it: bool(it.context.after), kit.ignore_option),
}
_FORM = kit.ScriptForm(
    mark="#BSUB",
    # bsub of LSF 10.1: environment variables set for jobs
    directory_variables=("LS_SUBCWD",),
    variables=r"LSB_\w+",
    is_read_whole=True,
    dashes="-",
    joint=" ",
    # bsub of LSF 10.1, -J and -Jd: the longest values
    longest=4094,
    options=_OPTIONS,
    custom=CUSTOM,
    spelled=_check_value,
    parse=partial(kit.dash_options, counts={**dict.fromkeys(_VALUED, 1), **dict.fromkeys(_FLAGS, 0)}),
    joints={"R": " "},
)
# For jobs with several components
_COMPONENT_FORM = attrs.evolve(_FORM, custom=COMPONENT_OPTIONS)
