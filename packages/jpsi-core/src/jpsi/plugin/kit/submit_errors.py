"""What it means for a job that its submission failed: whether the system may have the job nonetheless."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import attrs

from jpsi.contract import CommandResult, Failure, FailureKind

# A shell, or env, where a program is not installed
_NOT_FOUND = frozenset({126, 127})


@attrs.frozen(slots=True, kw_only=True)
class SubmitErrors:
    """What a submit command says when it fails, and what that means: for the hook `classify_failure`."""

    #: The command, as messages begin.
    command: str
    #: Parts of what it says, in the order in which they are looked for. What stands in no line is AMBIGUOUS.
    texts: Sequence[tuple[str, FailureKind]]
    #: Exit codes with which it refuses a job in any other words,
    own_codes: Collection[int] = ()
    #: if one of these stands among them: by a code alone it cannot be told from a shell or from ssh.
    own_words: Sequence[str] = ()
    #: What is of no interest in what it says, as a regular expression.
    noise: str | None = None

    def failure(self, result: CommandResult) -> Failure:
        """What a failed submission means, with what was said."""
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
