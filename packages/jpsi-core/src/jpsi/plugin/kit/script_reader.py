"""How the scripts of one batch system are read: which lines count, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from jpsi.contract import CustomOptions, Draft, ForeignScript, Reader, Spelled
from jpsi.plugin.kit.directive_words import Given, directive_words

_COMMAND = re.compile(r"[ \t]*[^#\s]")


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
