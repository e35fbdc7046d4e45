"""The configuration that every executor has; a plugin's `config_class` extends it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import attrs


@attrs.frozen(slots=True, kw_only=True)
class ExecutorConfig:
    """What can be set for an executor, whatever its backend."""

    #: Where jpsi keeps what it must remember; None is the user's state directory.
    work_directory: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    #: The shell that runs the job's script.
    shell: str = "/bin/sh"
    #: How long a cancelled job has between the request to end (TERM) and its end (KILL).
    kill_delay: timedelta = timedelta(seconds=5)
    #: How long the files of a final job are kept.
    keep_time: timedelta = timedelta(days=30)
    #: How many jobs' files are kept.
    keep_count: int = 100_000
