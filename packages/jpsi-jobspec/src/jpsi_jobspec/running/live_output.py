"""Shows what jobs write while they run, of those whose output is watched."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jpsi import Job, JpsiError, Output

#: Takes what a job has written to `stdout` or `stderr`.
Show = Callable[[bytes, str], None]


@attrs.define(slots=True, eq=False)
class _Stream:
    """One of the streams of a job, and how much of it was shown."""

    name: str
    output: Output
    offset: int = 0

    def look(self, show: Show) -> None:
        """Show what came since."""
        while (part := self.output.read(self.offset)) is not None and part.data:
            show(part.data, self.name)
            self.offset = part.end


class LiveOutput:
    """The jobs whose output is shown. Used by one thread."""

    def __init__(self, show: Show) -> None:
        """Show what they write by this function."""
        self._show = show
        self._begun: set[str] = set()
        self._streams: dict[str, tuple[Job, list[_Stream]]] = {}

    def begin(self, job: Job) -> None:
        """Show what a submitted job writes, from its beginning on, once."""
        executor = job.executor
        if job.id in self._begun or executor is None:
            return
        self._begun.add(job.id)
        outputs = {"stdout": executor.output(job, "stdout"), "stderr": executor.output(job, "stderr")}
        streams = [_Stream(name, it) for name, it in outputs.items() if it is not None]
        self._streams[job.id] = (job, streams)

    def look(self) -> None:
        """Show what came since; of what has ended all that is left."""
        for job_id, (job, streams) in list(self._streams.items()):
            is_final = job.status.final
            try:
                for it in streams:
                    it.look(self._show)
            except JpsiError:
                # where that is far away the next look may tell more
                if not is_final:
                    continue
            if is_final:
                del self._streams[job_id]
