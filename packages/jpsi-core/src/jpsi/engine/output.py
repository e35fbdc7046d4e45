"""What a job writes, wherever that is, while it writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from jpsi.contract.protocols import Streams
from jpsi.engine.job_files import JobFiles, OutputPart

#: The streams that a job writes to.
Stream = Literal["stdout", "stderr"]

# How much is told at once, unless one asks for more.
_MOST = 1 << 20


@attrs.frozen
class Output:
    """One stream of a job: a file that grows. Any thread may read it."""

    _files: JobFiles
    #: Where it is on the machine where the job runs.
    path: Path

    @classmethod
    def of(cls, files: JobFiles, streams: Streams, stream: Stream) -> Output:
        """One of the streams of a job, among the files of the machine where it runs."""
        return cls(files, getattr(streams, stream))

    @property
    def is_here(self) -> bool:
        """Whether it is a file of this machine; otherwise each look at it takes a while."""
        return self._files.are_here

    def read(self, offset: int = 0, most: int = _MOST) -> OutputPart | None:
        """What is in it from an offset on; None if there is no such file, or not yet.

        To follow a job, ask again from the `end` of what came. A job that runs again begins its output anew:
        what comes then has the `offset` 0.

        Args:
            offset: where to begin; a negative one is counted from the end. If the file is shorter than that,
                what is told begins at its beginning.
            most: how many bytes to tell at most.

        Raises:
            SubmitException: it cannot be read; if `transient` is true, not now.
        """
        return self._files.read(str(self.path), offset, most)
