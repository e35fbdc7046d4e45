"""Options for the table of a `ScriptForm` that several batch systems share.

The functions `..._option` return options that jpsi writes and reads; `..._reader` and `read_...` only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from jpsi.contract import walltime
from jpsi.model import Dependency, DependencyKind, JobAttributes, ResourceSpecV1, components
from jpsi.plugin.kit.script_form import Draft, JobRequest, Option, Reader, Writer

#: Returns the path in an option's value; ValueError if it is not the same for every job.
PathOf: TypeAlias = Callable[[str], Path]

#: The word of each kind of dependency in most batch systems.
AFTER = {kind: f"after{kind.value}" for kind in DependencyKind}

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_COUNT = re.compile(r"[1-9][0-9]{0,14}")
_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))? ?([A-Za-z]*)")


def attribute_option(field: str) -> Option:
    """Return the option whose value is the attribute of this name."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.attributes, field, value or None)

    return Option(lambda it: getattr(it.spec.attributes, field), read, expresses=(field,))


def count_option(field: str, write: Writer | None = None) -> Option:
    """Return the option whose value is a number, that of the field of this name in the resources.

    jpsi writes the field's value unless `write` returns another setting; 0 leaves the option out.
    """

    def read(draft: Draft, value: str) -> None:
        setattr(draft.resources, field, read_count(value))

    return Option(write or (lambda it: getattr(it.resources, field) or None), read)


def duration_option(unit: timedelta, parse: Callable[[str], timedelta]) -> Option:
    """Return the option for a job's walltime in whole units, which `parse` reads."""

    def read(draft: Draft, value: str) -> None:
        try:
            draft.attributes.duration = parse(value)
        except ValueError as e:
            draft.unread_limit = str(e)
            raise

    return Option(lambda it: walltime(it.spec, it.config, unit), read)


def mail_options(
    address: str, events: str, words: Mapping[str, Sequence[str]], joint: str = "", without: str | None = None
) -> Mapping[str, Option]:
    """Return the options, of these names, for the address and the events of the mail of a job.

    The batch system has `words` for each event; the last one tells it from other events. `joint` separates
    them, and a job that sends no mail has the value `without`.
    """

    def write_events(request: JobRequest) -> str | None:
        return joint.join(write_mail(request, words)) or without

    def read_address(draft: Draft, value: str) -> None:
        found = draft.options.get(events) or ""
        read_mail(draft, value, found.split(joint) if joint else found, words)

    def read_events(draft: Draft, _value: str) -> None:
        if draft.attributes.mail is None:
            raise ValueError("jpsi sends mail to an address, of events that it knows")

    return {
        address: Option(lambda it: it.spec.attributes.mail_request()[1], read_address, expresses=("mail",)),
        events: Option(write_events, read_events),
    }


def write_mail(request: JobRequest, words: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the words for the events of the mail of a job; ValueError for an event without words."""
    events, _ = request.spec.attributes.mail_request()
    if missing := [event for event in events if event not in words]:
        raise ValueError(f"attributes.mail: the batch system sends no mail of {missing[0]} alone; use end")
    return [word for event in events for word in words[event]]


def read_mail(draft: Draft, address: str, found: Iterable[str], words: Mapping[str, Sequence[str]]) -> None:
    """Read the address and the words of a mail; ValueError if an attribute cannot express them."""
    left = set(found)
    events = []
    for event, own in words.items():
        if own[-1] in left:
            events.append(event)
            left.difference_update(own)
    mail = f"{','.join(events)}:{address}"
    if left or not events:
        raise ValueError("jpsi cannot express the events of the mail")
    JobAttributes(mail=mail).mail_request()
    draft.attributes.mail = mail


def gpu_type(request: JobRequest) -> str | None:
    """Return the kind of GPUs that a job requests; ValueError if it is no plain name."""
    kind = request.spec.attributes.gpu_type
    if kind is not None and not _NAME.fullmatch(kind):
        raise ValueError(f"attributes.gpu_type must be a name such as a100, not {kind!r}")
    return kind


def path_reader(field: str, parse: PathOf) -> Reader:
    """Return a reader for an option that sets the path of this name."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.spec, field, parse(value))

    return read


def output_reader(parse: PathOf, is_joined: Callable[[Draft], bool]) -> Reader:
    """Return a reader for the file of the output, and of the errors too if the streams are joined."""

    def read(draft: Draft, value: str) -> None:
        draft.spec.stdout_path = parse(value)
        if is_joined(draft):
            draft.spec.stderr_path = draft.spec.stdout_path

    return read


def join_reader(is_joined: Callable[[Draft], bool]) -> Reader:
    """Return a reader for the option that joins the streams, whose effect `output_reader` has on `-o`."""

    def read(draft: Draft, _: str) -> None:
        if is_joined(draft) and "o" not in draft.options:
            raise ValueError("without -o, jpsi keeps output and errors in a file each")

    return read


def variables_reader(separator: str = ",") -> Reader:
    """Return a reader for environment variables; `separator` is a regular expression."""

    def read(draft: Draft, value: str) -> None:
        for item in re.split(separator, value):
            name, has_value, text = item.partition("=")
            # a variable without a value is taken from the environment, which jobs inherit anyway
            if has_value:
                draft.set_variable(name.strip(), text.replace("\\,", ","))

    return read


def dependencies_reader(
    item: str, separator: str = ",", kinds: Mapping[DependencyKind, str] = AFTER
) -> Reader:
    """Return a reader for dependencies.

    `item` is a regular expression for one of them, with the groups `word` and `ids`; colons separate the ids.
    """
    pattern, kind_of = re.compile(item), {word: kind for kind, word in kinds.items()}

    def read(draft: Draft, value: str) -> None:
        found = []
        for text in map(str.strip, value.split(separator)):
            match = pattern.fullmatch(text)
            if match is None or match["word"] not in kind_of:
                raise ValueError(f"jpsi cannot express the dependency {text!r}")
            found += [Dependency(native_id, kind_of[match["word"]]) for native_id in match["ids"].split(":")]
        draft.attributes.after = [*found]

    return read


def array_reader(variable: str, *, range_variables: Iterable[tuple[str, str]] = ()) -> Reader:
    """Return a reader for the indices of an array.

    Args:
        variable: the variable in which the script gets its index.
        range_variables: see `Arrays`.
    """
    own = {variable: "JPSI_ARRAY_INDEX", **dict(range_variables)}

    def read(draft: Draft, value: str) -> None:
        draft.attributes.set_custom_attribute("jpsi.array", value)
        references = {name: f"${{{it}}}" for name, it in own.items()}
        draft.spec.environment = {**(draft.spec.environment or {}), **references}

    return read


def ignore_option(_draft: Draft, _value: str) -> None:
    """Ignore an option that changes nothing for jpsi."""


def read_name(draft: Draft, value: str) -> None:
    """Read the name of a job."""
    draft.spec.name = value


def read_exclusive(draft: Draft, value: str) -> None:
    """Read the option that gives a job its nodes alone."""
    if value:
        raise ValueError("jpsi can request nodes for one job alone, or shared with any jobs")
    for component in components(draft.spec.resources):
        component.exclusive_node_use = True


def read_count(value: str) -> int:
    """Return a number of at least 1; ValueError for other text."""
    if _COUNT.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not a single whole number")
    return int(value)


def read_amount(value: str, units: Mapping[str, int]) -> int:
    """Return an amount as a whole number of ones, rounded up; the unit follows the number.

    >>> read_amount("1.5k", {"k": 1000})
    1500

    Raises:
        ValueError: the text is no amount, or the amount is zero.
    """
    amount = _AMOUNT.fullmatch(value)
    if amount is None or amount[3] not in units:
        raise ValueError(f"{value!r} is not an amount that jpsi understands")
    whole, fraction, unit = amount[1], amount[2] or "", amount[3]
    ones: int = -(-int(whole + fraction) * units[unit] // 10 ** len(fraction))
    if ones == 0:
        raise ValueError(f"{value!r} has a special meaning here, and is no amount")
    return ones


def share_gpus(gpus: int, resources: ResourceSpecV1) -> int:
    """Return the GPUs of each process; ValueError if they cannot all have the same number."""
    per_process, remainder = divmod(gpus, resources.computed_process_count)
    if remainder or not per_process:
        raise ValueError("the GPUs cannot be shared equally among the processes")
    return per_process


def read_path(value: str, patterns: re.Pattern[str]) -> Path:
    """Return a path; ValueError if it is not the same for every job: a placeholder matches `patterns`."""
    if not value or patterns.search(value):
        msg = "jpsi has no patterns in paths; it keeps the output in the folder of the job instead"
        raise ValueError(msg)
    return Path(value)
