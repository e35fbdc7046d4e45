"""Retries writes to the spool that failed because the disk is full or read-only, until they succeed.

The spool uses it for what can wait, such as final statuses, so that a full disk does not stop jobs from being
followed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0


class RetryWriter:
    """A writer of files below one root: a background thread retries the writes that failed.

    Any thread may call the methods; none raises OSError.

    Args:
        root: the directory that warnings name.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._pending: dict[str, Callable[[], object]] = {}
        self._is_failing = False
        # after a fork, the parent's thread is not alive in the child
        self._thread: threading.Thread | None = None

    def failed(self, error: OSError) -> None:
        """Warn that a write failed; only once, until a write succeeds."""
        with self._lock:
            was_failing, self._is_failing = self._is_failing, True
        if was_failing:
            log.debug("%s: %s", self._root, error)
        else:
            log.warning(
                "%s cannot be written to (%s); jpsi still monitors the jobs, and retries the writes",
                self._root,
                error,
            )

    def succeeded(self) -> None:
        """Record that a write succeeded, and log it once if writes had failed before and none is pending."""
        with self._lock:
            is_recovered = self._is_failing and not self._pending
            self._is_failing = self._is_failing and not is_recovered
        if is_recovered:
            log.warning("%s can be written to again", self._root)

    def write(self, name: str, call: Callable[[], object]) -> None:
        """Write now, or retry in a background thread until it succeeds.

        Args:
            name: the name of what is written; a later write of the same name replaces a pending one.
            call: does the write, and may raise OSError.
        """
        try:
            call()
        except FileNotFoundError as e:
            log.warning("%s is not on disk, as its folder was removed: %s", name, e)
        except OSError as e:
            self.failed(e)
            with self._lock:
                self._pending[name] = call
                is_retrying = (self._thread is not None and self._thread.is_alive()) or self._start()
            if not is_retrying:
                log.warning("jpsi could not start a thread that retries the writes to %s", self._root)

    def retry(self) -> bool:
        """Retry all pending writes; return True if none is pending afterwards."""
        with self._lock:
            pending = dict(self._pending)
        for name, call in pending.items():
            try:
                call()
            except FileNotFoundError:
                log.debug("%s: %s was removed meanwhile", self._root, name)
            except OSError as e:
                log.debug("%s: %s: %s", self._root, name, e)
                continue
            with self._lock:
                if self._pending.get(name) is call:
                    del self._pending[name]
        self.succeeded()
        with self._lock:
            return not self._pending

    def _start(self) -> bool:
        """Start the thread that retries; return False if no thread can be started."""
        self._thread = threading.Thread(target=self._run, name="jpsi-retry-writer", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            return False
        return True

    def _run(self, sleep: Callable[[float], object] = time.sleep) -> None:
        while True:
            sleep(_RETRY_SECONDS)
            if self.retry():
                with self._lock:
                    # another thread may have added a write since
                    if not self._pending:
                        self._thread = None
                        return
