"""Shows the output of watched jobs while they run.

The driver calls it between its other steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import attrs

from jpsi import Job, JpsiError, Output

#: Called with output of a job and its stream, `stdout` or `stderr`.
Show = Callable[[bytes, str], None]


@attrs.define(slots=True, eq=False)
class _Stream:
    """An output stream of a job, and how much of it was shown."""

    job: Job
    name: str
    output: Output
    offset: int = 0


class LiveOutput:
    """The jobs whose output is shown. Used by one thread."""

    def __init__(self, show: Show) -> None:
        """Show output by calling `show`."""
        self._show = show
        self._begun: set[str] = set()
        self._streams: list[_Stream] = []

    def begin(self, job: Job) -> None:
        """Show the output of a submitted job from its beginning; a second call does nothing."""
        if job.id in self._begun or job.executor is None:
            return
        self._begun.add(job.id)
        for name in ("stdout", "stderr"):
            output = job.executor.output(job, name)
            if output is not None:
                self._streams.append(_Stream(job, name, output))

    def update(self) -> None:
        """Show the output since the last call; all that is left of a job that has ended."""
        for it in list(self._streams):
            is_final = it.job.status.final
            self._show_new(it)
            if is_final:
                self._streams.remove(it)

    def _show_new(self, stream: _Stream) -> None:
        # on a remote host the next read may succeed
        with contextlib.suppress(JpsiError):
            while (chunk := stream.output.read(stream.offset)) is not None and chunk.data:
                self._show(chunk.data, stream.name)
                stream.offset = chunk.end
