"""What a submit script asks for that was written for a batch system and not for jpsi."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import attrs

from jpsi.contract.directive_words import Given, directive_words
from jpsi.contract.options import CustomOptions
from jpsi.model.references import escape
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import JobAttributes, JobSpec

_COMMAND = re.compile(r"[ \t]*[^#\s]")
_COUNT = re.compile(r"[1-9][0-9]{0,14}")
_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))? ?([A-Za-z]*)")


#: Name and value of an option as a script has them, from those of `Options`.
Spelled: TypeAlias = Callable[[str, str | None], tuple[str, str | None]]


@attrs.frozen(slots=True, kw_only=True)
class ForeignScript:
    """What the directives of a script ask for."""

    #: The job without arguments. Its executable is the shell that they name, and its directory the one where
    #: the job runs, relative to where the script is submitted; None if they say nothing of it.
    spec: JobSpec
    #: How many directives there are; a script that has none was not written for this batch system.
    directives: int
    #: What the spec does not say, or says otherwise, one sentence each.
    lost: tuple[str, ...] = ()
    #: Whether relative paths of streams are relative to where the script is submitted, wherever it runs.
    is_output_here: bool = False


@attrs.define(slots=True, kw_only=True)
class Draft:
    """A spec that is filled in, option by option."""

    #: Every option of the script; of one that was given several times, what was given last.
    options: Mapping[str, str | None]
    #: What options are called in messages, such as `--`.
    dashes: str
    #: The options that a user may set past jpsi.
    custom: CustomOptions
    #: Name and value as a script has them, from those of options.
    spelled: Spelled
    spec: JobSpec = attrs.field(
        factory=lambda: JobSpec(resources=ResourceSpecV1(), attributes=JobAttributes())
    )
    lost: list[str] = attrs.field(factory=list)

    @property
    def resources(self) -> ResourceSpecV1:
        """The resources of the spec."""
        assert isinstance(self.spec.resources, ResourceSpecV1)  # noqa: S101  as it was made
        return self.spec.resources

    @property
    def attributes(self) -> JobAttributes:
        """The attributes of the spec."""
        assert self.spec.attributes is not None  # noqa: S101  as it was made
        return self.spec.attributes

    def set_variable(self, name: str, value: str) -> None:
        """Give the job an environment variable with just this value."""
        self.spec.environment = {**(self.spec.environment or {}), name: escape(value)}

    def keep(self, option: str, value: str | None, why_not: str | None = None) -> None:
        """Carry an option over as it is, as a custom attribute, or say that it is lost.

        Args:
            option: its name.
            value: its value, if it has one.
            why_not: why it is nothing that a spec has a field for.
        """
        refusal = self.custom.refused.get(option)
        if refusal is None and self.custom.name.fullmatch(option):
            name = f"{self.custom.systems[0]}.{option}"
            self.attributes.set_custom_attribute(name, True if value is None else value)
            return
        self.lose(option, value, why_not or refusal or "jpsi does not know the option")

    def lose(self, option: str, value: str | None, why: str) -> None:
        """Say that an option is not carried over."""
        name, text = self.spelled(option, value)
        said = "" if text is None else f" {text}"
        self.lost.append(f"{self.dashes}{name}{said}: {why}")


#: Takes an option's value into a draft; ValueError says why that has no field for it. A value of an option
#: that has none is empty.
Reader: TypeAlias = Callable[[Draft, str], None]


def _as_it_is(name: str, value: str | None) -> tuple[str, str | None]:
    return name, value


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen(slots=True, kw_only=True)
class ScriptReader:
    """How the scripts of one batch system are read: for the hook `read_script`."""

    #: What a directive begins with, at the beginning of its line.
    mark: re.Pattern[str] = attrs.field(converter=_compiled)
    #: Whether directives behind the first command count too.
    is_read_whole: bool
    #: The options that the words of a directive are; ValueError for what is none.
    options: Callable[[Sequence[str]], Iterator[Given]]
    #: What stands before the name of an option in messages.
    dashes: str = "--"
    #: Which options users may set past jpsi: those that have no reader, or not for this value.
    custom: CustomOptions
    #: Name and value of an option as a script has them, in messages.
    spelled: Spelled = _as_it_is
    #: What stands between the values of an option of which all count that are given.
    joints: Mapping[str, str] = attrs.field(factory=dict)
    #: What becomes of an option. They are asked in this order, so that one may count on those before it.
    readers: Mapping[str, Reader]

    def read(self, text: str) -> ForeignScript:
        """What a script asks for."""
        directives = list(self._directives(text))
        options: dict[str, str | None] = {}
        unread = []
        for directive in directives:
            try:
                # what was read before the mistake is kept
                for name, value in self.options(directive_words(directive)):
                    before = options.pop(name, None)
                    options[name] = self._together(name, before, value)
            except ValueError as e:
                unread.append(f"the directive {directive!r} is not read to its end: {e}")
        draft = Draft(
            options=options, dashes=self.dashes, custom=self.custom, spelled=self.spelled, lost=unread
        )
        self._fill(draft)
        return ForeignScript(spec=draft.spec, directives=len(directives), lost=tuple(draft.lost))

    def _together(self, name: str, before: str | None, value: str | None) -> str | None:
        if before is None or value is None or name not in self.joints:
            return value
        return f"{before}{self.joints[name]}{value}"

    def _fill(self, draft: Draft) -> None:
        for name, reader in self.readers.items():
            if name in draft.options:
                value = draft.options[name]
                try:
                    reader(draft, value or "")
                except ValueError as e:
                    draft.keep(name, value, str(e))
        for name, value in draft.options.items():
            if name not in self.readers:
                draft.keep(name, value)

    def _directives(self, text: str) -> Iterator[str]:
        for line in text.splitlines():
            found = self.mark.match(line)
            if found is not None:
                yield line[found.end() :].strip()
            elif not self.is_read_whole and _COMMAND.match(line):
                return


def passed_over(_draft: Draft, _value: str) -> None:
    """A reader for an option that changes nothing for jpsi."""


def read_name(draft: Draft, value: str) -> None:
    """A reader for the name of a job."""
    draft.spec.name = value


def attribute(field: str) -> Reader:
    """A reader for an option that is the attribute of this name."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.attributes, field, value or None)

    return read


def read_count(value: str) -> int:
    """A number of at least 1.

    Raises:
        ValueError: it is none.
    """
    if _COUNT.fullmatch(value) is None:
        msg = f"{value!r} is not one number"
        raise ValueError(msg)
    return int(value)


def read_amount(value: str, units: Mapping[str, int]) -> int:
    """An amount in whole ones, rounded up, of which the unit stands behind the number.

    >>> read_amount("1.5k", {"k": 1000})
    1500

    Raises:
        ValueError: it is none, or nothing at all.
    """
    amount = _AMOUNT.fullmatch(value)
    if amount is None or amount[3] not in units:
        msg = f"{value!r} is not an amount that jpsi understands"
        raise ValueError(msg)
    whole, fraction, unit = amount[1], amount[2] or "", amount[3]
    ones: int = -(-int(whole + fraction) * units[unit] // 10 ** len(fraction))
    if ones == 0:
        msg = f"{value!r} is a word of its own here, and no amount"
        raise ValueError(msg)
    return ones


def read_path(value: str, patterns: re.Pattern[str]) -> Path:
    """A path, if it is the same for every job.

    Raises:
        ValueError: it has something in it that matches `patterns`, which stands for something else.
    """
    if not value or patterns.search(value):
        msg = "a path of jpsi has no patterns; without it the output is kept in the job's own folder"
        raise ValueError(msg)
    return Path(value)
