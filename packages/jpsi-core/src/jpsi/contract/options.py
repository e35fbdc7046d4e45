"""The options of a submit command: what they are set to, and what users may set past jpsi."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from jpsi.contract.spec_values import attributes, dependencies
from jpsi.model import JobSpec, one_line

#: What an option is set to: a text or a number; True if it has no value; None or False if it is left out; and
#: several of these where it is given several times. A custom attribute says it in the same way.
Setting: TypeAlias = str | float | bool | tuple[str | float | bool | None, ...] | None
#: Options by their names, without dashes.
Options: TypeAlias = Mapping[str, Setting]


def given(options: Options) -> Iterator[tuple[str, str | None]]:
    """The options that are not left out, each with its value, or None if it has none.

    >>> list(given({"n": 2, "x": True, "q": None, "l": ("a=1", "b=2")}))
    [('n', '2'), ('x', None), ('l', 'a=1'), ('l', 'b=2')]
    """
    for name, setting in options.items():
        for value in setting if isinstance(setting, tuple) else (setting,):
            if value is not None and value is not False:
                yield name, None if value is True else str(value)


def custom_options(spec: JobSpec, system: str) -> dict[str, Any]:  # Any: whatever users wrote
    """The custom attributes `<system>.<option>` of a spec, by option; the case of the system is ignored.

    >>> from jpsi.model.spec import JobAttributes
    >>> custom_options(JobSpec(attributes=JobAttributes(custom_attributes={"PBS.q": 1, "x.q": 2})), "pbs")
    {'q': 1}
    """
    custom, start = attributes(spec).custom_attributes or {}, f"{system}."
    return {name[len(start) :]: value for name, value in custom.items() if name.lower().startswith(start)}


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen(slots=True, kw_only=True)
class CustomOptions:
    """Which options users may set past jpsi, by custom attributes `<system>.<option>`."""

    #: How the attributes begin; the case does not matter.
    systems: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    #: What the whole name of an option looks like.
    name: re.Pattern[str] = attrs.field(converter=_compiled)
    #: A good one.
    example: str
    #: Those that would break what jpsi promises, with what to do instead.
    refused: Mapping[str, str]
    #: What an option contradicts, of those that jpsi sets itself.
    excludes: Mapping[str, Collection[str]] = attrs.field(factory=dict)
    #: Those whose value is put before what jpsi says, with a blank, and does not replace it.
    joined: Collection[str] = ()
    #: Those that can be given several times, so that a value is one more.
    repeated: Collection[str] = ()
    #: Those that are no options of the command: the backend takes their values from `of`.
    indirect: Collection[str] = ()
    #: The option that tells of the jobs that a job waits for.
    dependency: str | None = None
    #: Those that jpsi sets, where the command takes the beginning of a name for the whole; else None.
    abbreviated: Collection[str] | None = None

    def of(self, spec: JobSpec) -> dict[str, Any]:  # as above
        """The custom attributes of a spec for this system, by option."""
        return {option: value for _, option, value in self._given(spec)}

    def _given(self, spec: JobSpec) -> Iterator[tuple[str, str, Any]]:  # as above
        for system in self.systems:
            for option, value in custom_options(spec, system).items():
                yield system, option, value

    def merged(self, options: Options, spec: JobSpec) -> Options:
        """The options of jpsi with what a sound spec adds, replaces and takes away."""
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
                # at the end, where the user's come
                merged.pop(name, None)
                if value is not None and value is not False:
                    for other in self.excludes.get(name, ()):
                        merged.pop(other, None)
                    merged[name] = value
        return merged

    def problems(self, spec: JobSpec) -> Iterator[str]:
        """What is wrong with the custom attributes of a valid spec, one sentence each."""
        first: dict[str, str] = {}
        for system, option, value in self._given(spec):
            where = f"custom attribute {one_line(f'{system}.{option}')}"
            if option in first:
                yield f"{where} cannot be given beside {first[option]}.{option}, which is the same"
            first.setdefault(option, system)
            yield from (f"{where} {problem}" for problem in self._wrong_name(system, option))
            yield from (f"{where} {problem}" for problem in _wrong_value(value))
            if option == self.dependency and dependencies(spec):
                yield f"attributes.after and the {where} cannot be given both"

    def _wrong_name(self, system: str, option: str) -> Iterator[str]:
        whole = self._whole(option)
        if option in self.refused:
            yield f"cannot be set: {self.refused[option]}"
        elif not self.name.fullmatch(option):
            yield f"cannot be set: an option's whole name is needed, such as {system}.{self.example}"
        elif whole is not None and whole in self.refused:
            yield f"cannot be set: it may count as {whole}: {self.refused[whole]}"
        elif whole is not None:
            yield f"may count as {whole}; write {system}.{whole}"

    def _whole(self, option: str) -> str | None:
        """An option that `option` may be taken for, since that is how it begins."""
        if self.abbreviated is None or option in self.abbreviated:
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
        yield f"cannot be written down: {e}"
