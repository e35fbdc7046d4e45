"""Reads the scripts of one batch system: finds the directives and converts their options to a spec."""

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
    """A reader of one batch system's scripts: for the hook `read_script`."""

    #: The beginning of a directive, at the beginning of its line.
    mark: re.Pattern[str] = attrs.field(converter=_compiled)
    #: True if directives after the first command count too.
    is_read_whole: bool
    #: Yields the options in the words of a directive; ValueError for a word that is no option.
    options: Callable[[Sequence[str]], Iterator[Given]]
    #: The prefix of an option's name in messages.
    dashes: str = "--"
    #: The options that users may set past jpsi; kept if there is no reader, or it refuses the value.
    custom: CustomOptions
    #: Returns name and value of an option as scripts spell them, for messages.
    spelled: Spelled = _as_it_is
    #: For options whose values add up, the separator between them.
    joints: Mapping[str, str] = attrs.field(factory=dict)
    #: The reader of each option. They are called in this order, so that one may rely on those before it.
    readers: Mapping[str, Reader]

    def read(self, text: str) -> ForeignScript:
        """Return the job that a script asks for."""
        directives = list(self._directives(text))
        options: dict[str, str | None] = {}
        unread = []
        for directive in directives:
            try:
                # options before the mistake are kept
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
