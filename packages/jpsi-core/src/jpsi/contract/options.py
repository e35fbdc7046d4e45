"""The options of a submit command: the form of their settings, and checks of those that users set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from jpsi.contract.spec_values import dependencies
from jpsi.model import JobSpec, one_line

#: The setting of an option: a text or a number; True if it has no value; None or False if it is left out; and
#: a tuple of these if it is given several times. Custom attributes use the same form.
Setting: TypeAlias = str | float | bool | tuple[str | float | bool | None, ...] | None
#: Options by their names, without dashes.
Options: TypeAlias = Mapping[str, Setting]


def set_options(options: Options) -> Iterator[tuple[str, str | None]]:
    """Yield the options that are not left out, each with its value, or None if it has none.

    >>> list(set_options({"n": 2, "x": True, "q": None, "l": ("a=1", "b=2")}))
    [('n', '2'), ('x', None), ('l', 'a=1'), ('l', 'b=2')]
    """
    for name, setting in [it for it in options.items() if it[1] is not None]:
        for value in setting if isinstance(setting, tuple) else (setting,):
            if value is not None and value is not False:
                yield name, None if value is True else str(value)


def custom_options(spec: JobSpec, system: str) -> dict[str, Any]:  # Any: whatever users wrote
    """Return the custom attributes `<system>.<option>` of a spec, by option; the system's case is ignored.

    >>> from jpsi.model.spec import JobAttributes
    >>> custom_options(JobSpec(attributes=JobAttributes(custom_attributes={"PBS.q": 1, "x.q": 2})), "pbs")
    {'q': 1}
    """
    return {option: value for _, option, value in _custom_attributes(spec, system)}


def _custom_attributes(spec: JobSpec, system: str) -> Iterator[tuple[str, str, Any]]:  # as above
    """Yield the name of each custom attribute for a system as the user wrote it, its option and its value."""
    start = f"{system}."
    for name, value in (spec.attributes.custom_attributes or {}).items():
        if name.lower().startswith(start):
            yield name, name[len(start) :], value


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen(slots=True, kw_only=True)
class CustomOptions:
    """Pass-through options: those that users may give directly to the submit command.

    They are custom attributes `<system>.<option>`.
    """

    #: The prefixes of the attributes; case does not matter.
    systems: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    #: The pattern that the whole name of an option matches.
    name: re.Pattern[str] = attrs.field(converter=_compiled)
    #: A valid option name, for messages.
    example: str
    #: Options that would break what jpsi guarantees, each with what to do instead.
    refused: Mapping[str, str]
    #: For an option, the options of jpsi that it contradicts.
    excludes: Mapping[str, Collection[str]] = attrs.field(factory=dict)
    #: Options whose user value is prepended to jpsi's, separated by a space.
    joined: Collection[str] = ()
    #: Options that can be given several times, so that a user's value is added.
    repeated: Collection[str] = ()
    #: Names that are no options of the command: the backend takes their values from `of`.
    indirect: Collection[str] = ()
    #: The option that sets the dependencies of a job.
    dependency: str | None = None
    #: The options that jpsi sets, if the command accepts abbreviated option names; else None.
    abbreviated: Collection[str] | None = None
    #: Other options whose whole name is the beginning of a refused option or of one that jpsi sets.
    exact: Collection[str] = ()

    def of(self, spec: JobSpec) -> dict[str, Any]:  # as above
        """Return the custom attributes of a spec for this system, by option."""
        return {
            option: value for system in self.systems for option, value in custom_options(spec, system).items()
        }

    def merged(self, options: Options, spec: JobSpec) -> Options:
        """Return jpsi's options with what a valid spec adds, replaces and removes."""
        merged = dict(options)
        for name, value in self.of(spec).items():
            if name in self.indirect:
                continue
            own = options.get(name)
            if name in self.joined:
                merged[name] = _joined(value, own)
            elif name in self.repeated:
                merged[name] = (*(own if isinstance(own, tuple) else (own,)), value)
            else:
                # removed and added again, so that the user's options come last
                merged.pop(name, None)
                if value is not None and value is not False:
                    for other in self.excludes.get(name, ()):
                        merged.pop(other, None)
                    merged[name] = value
        return merged

    def problems(self, spec: JobSpec) -> Iterator[str]:
        """Yield the problems of the custom attributes of a valid spec, one sentence each."""
        first: dict[str, str] = {}
        for system in self.systems:
            for name, option, value in _custom_attributes(spec, system):
                where = f"custom attribute {one_line(name)}"
                if option in first:
                    yield f"{where} is the same option as {one_line(first[option])}; give only one of them"
                first.setdefault(option, name)
                yield from (f"{where} {problem}" for problem in self._wrong_name(system, option))
                yield from (f"{where} {problem}" for problem in _wrong_value(value))
                if option == self.dependency and dependencies(spec):
                    yield f"attributes.after and the {where} both set the dependencies; give one of them"

    def _wrong_name(self, system: str, option: str) -> Iterator[str]:
        whole = self._whole(option)
        if option in self.refused:
            yield f"cannot be set: {self.refused[option]}"
        elif not self.name.fullmatch(option):
            yield f"cannot be set: an option's whole name is needed, such as {system}.{self.example}"
        elif whole is not None and whole in self.refused:
            yield f"cannot be set: the command may read it as {whole}: {self.refused[whole]}"
        elif whole is not None:
            yield f"is ambiguous, the command may read it as {whole}; write {system}.{whole}"

    def _whole(self, option: str) -> str | None:
        """Return an option that the command may take `option` for, as an abbreviation, or None."""
        if self.abbreviated is None or option in self.abbreviated or option in self.exact:
            # a command that accepts abbreviations prefers the option of the very name
            return None
        every: Iterable[str] = [*self.refused, *sorted(self.abbreviated)]
        return next((it for it in every if it.startswith(option)), None)


def _joined(*settings: object) -> str | None:
    texts = [str(it) for it in settings if it is not None and not isinstance(it, bool)]
    return " ".join(text for text in texts if text) or None


def _wrong_value(value: object) -> Iterator[str]:
    if value is not None and not isinstance(value, str | int | float):
        yield (
            "must be text, a number, True for an option without a value, or None or False to leave the "
            f"option out, not {value!r}"
        )
        return
    try:
        str(value)
    except ValueError as e:
        yield f"cannot be converted to text: {e}"
