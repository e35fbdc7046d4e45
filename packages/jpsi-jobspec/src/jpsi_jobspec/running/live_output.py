"""Shows the output of watched jobs while they run."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jpsi import Job, JpsiError, Output

#: Called with output of a job and its stream, `stdout` or `stderr`.
Show = Callable[[bytes, str], None]


@attrs.define(slots=True, eq=False)
class _Stream:
    """An output stream of a job, and how much of it was shown."""

    name: str
    output: Output
    offset: int = 0

    def show_new(self, show: Show) -> None:
        """Show the output since the last look."""
        while (chunk := self.output.read(self.offset)) is not None and chunk.data:
            show(chunk.data, self.name)
            self.offset = chunk.end


class LiveOutput:
    """The jobs whose output is shown. Used by one thread."""

    def __init__(self, show: Show) -> None:
        """Show output by calling `show`."""
        self._show = show
        self._begun: set[str] = set()
        self._streams: dict[str, tuple[Job, list[_Stream]]] = {}

    def begin(self, job: Job) -> None:
        """Show the output of a submitted job from its beginning; a second call does nothing."""
        executor = job.executor
        if job.id in self._begun or executor is None:
            return
        self._begun.add(job.id)
        outputs = {"stdout": executor.output(job, "stdout"), "stderr": executor.output(job, "stderr")}
        streams = [_Stream(name, it) for name, it in outputs.items() if it is not None]
        self._streams[job.id] = (job, streams)

    def update(self) -> None:
        """Show the output since the last look; all that is left of a job that has ended."""
        for job_id, (job, streams) in list(self._streams.items()):
            is_final = job.status.final
            try:
                for it in streams:
                    it.show_new(self._show)
            except JpsiError:
                # on a remote host the next look may succeed
                if not is_final:
                    continue
            if is_final:
                del self._streams[job_id]
