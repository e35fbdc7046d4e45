"""Classifies failed submissions: decides if the batch system may have the job nevertheless."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import attrs

from jpsi.contract import CommandResult, Failure, FailureKind

# Exit codes of a shell, or of env, if a program is not installed
_NOT_FOUND = frozenset({126, 127})


@attrs.frozen(slots=True, kw_only=True)
class SubmitErrors:
    """The error messages of a submit command, and their meaning: for the hook `classify_failure`."""

    #: The command's name, with which messages begin.
    command: str
    #: Parts of its output with their meaning, tried in this order. Output that matches none is AMBIGUOUS.
    texts: Sequence[tuple[str, FailureKind]]
    #: Exit codes with which it refuses a job in words that are not in `texts`.
    own_codes: Collection[int] = ()
    #: Words one of which must be in the output for `own_codes` to count: the code alone could come from a
    #: shell or from ssh.
    own_words: Sequence[str] = ()
    #: A regular expression for parts of its output to leave out of messages.
    noise: str | None = None

    def failure(self, result: CommandResult) -> Failure:
        """Return the meaning of a failed submission, with the command's message."""
        said = result.complaint if self.noise is None else re.sub(self.noise, "", result.complaint)
        kind = self._kind(result.returncode, result.stderr + result.stdout)
        return Failure(kind, f"{self.command}: {said}")

    def _kind(self, returncode: int, text: str) -> FailureKind:
        for part, kind in self.texts:
            if part in text:
                return kind
        if returncode in self.own_codes and any(words in text for words in self.own_words):
            return FailureKind.INVALID_JOB
        if returncode in _NOT_FOUND and "not found" in text:
            return FailureKind.PERMANENT
        return FailureKind.AMBIGUOUS
