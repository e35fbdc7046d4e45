"""Measures how long a batch system has not answered, and decides when the log should say so."""

from __future__ import annotations

import attrs

#: A batch system may fail to answer once or twice; an outage of so many seconds is logged.
PATIENCE_SECONDS = 60.0


@attrs.define
class Outage:
    """The outages of one batch system that one program polls. Times are seconds of one clock."""

    #: A failed poll that ended longer than this before the next one belongs to another outage.
    lapse: float
    _since: float | None = attrs.field(default=None, init=False)
    _last_failure: float = attrs.field(default=0.0, init=False)
    _is_logged: bool = attrs.field(default=False, init=False)

    def note_outage(self, begun: float, ended: float) -> float | None:
        """Note a failed poll; return the length of the outage in seconds if it is to be logged now."""
        if self._since is None or begun > self._last_failure + self.lapse:
            self._since, self._is_logged = begun, False
        self._last_failure = ended
        lasted = ended - self._since
        if self._is_logged or lasted < PATIENCE_SECONDS:
            return None
        self._is_logged = True
        return lasted

    def note_success(self) -> bool:
        """Note an answered poll; return True if that ends an outage that was logged."""
        was_logged, self._since, self._is_logged = self._is_logged, None, False
        return was_logged
