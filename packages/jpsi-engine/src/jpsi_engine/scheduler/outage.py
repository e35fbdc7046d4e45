"""How long a batch system has left questions unanswered, and when somebody should hear of that."""

from __future__ import annotations

import attrs

#: A batch system may miss a question or two; what lasts so long is worth a word.
PATIENCE_SECONDS = 60.0


@attrs.define
class Silence:
    """The questions that one program asks one batch system. Times are seconds of one clock."""

    #: What was asked longer before the last question than this has nothing to do with it.
    lapse: float
    _since: float | None = attrs.field(default=None, init=False)
    _last: float = attrs.field(default=0.0, init=False)
    _is_told: bool = attrs.field(default=False, init=False)

    def unanswered(self, begun: float, ended: float) -> float | None:
        """A question was not answered; returns for how many seconds none was, if that is to be told now."""
        if self._since is None or begun > self._last + self.lapse:
            self._since, self._is_told = begun, False
        self._last = ended
        lasted = ended - self._since
        if self._is_told or lasted < PATIENCE_SECONDS:
            return None
        self._is_told = True
        return lasted

    def answered(self) -> bool:
        """A question was answered; returns whether that ends a silence that was told."""
        was_told, self._since, self._is_told = self._is_told, None, False
        return was_told
