"""The settings of executors as psij spells them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import attrs


def _directory(value: str | Path | None) -> Path:
    return JobExecutorConfig.DEFAULT_WORK_DIRECTORY if value is None else Path(value)


def _log_file(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)


@attrs.define(slots=False)
class JobExecutorConfig:
    """The settings that every executor has."""

    #: Accepted and not used: the log of a launcher is in the folder of its job.
    launcher_log_file: Path | None = attrs.field(default=None, converter=_log_file)
    #: The directory for records of jobs; the default stands for that of jpsi.
    work_directory: Path = attrs.field(default=None, converter=_directory)

    DEFAULT: ClassVar[JobExecutorConfig]
    DEFAULT_WORK_DIRECTORY: ClassVar[Path] = Path.home() / ".psij" / "work"

    def settings_for_jpsi(self) -> dict[str, Any]:
        """Return the fields of jpsi's configuration that this one sets."""
        is_default = self.work_directory == self.DEFAULT_WORK_DIRECTORY
        return {} if is_default else {"work_directory": self.work_directory}


@attrs.define(slots=False)
class BatchSchedulerExecutorConfig(JobExecutorConfig):
    """The settings of the executors of batch systems."""

    #: Seconds between polls of the queue in the long run.
    queue_polling_interval: float = 30
    #: Seconds until the first poll after a submission.
    initial_queue_polling_delay: float = 2
    #: Accepted and not used: an error of the batch system fails no job.
    queue_polling_error_threshold: int = 2
    #: Accepted and not used: jpsi keeps the files of a job for its `keep_time`.
    keep_files: bool = False

    def settings_for_jpsi(self) -> dict[str, Any]:
        """Return the fields of jpsi's configuration that this one sets."""
        first, longest = self.initial_queue_polling_delay, self.queue_polling_interval
        intervals = {"shortest_interval": min(first, longest), "longest_interval": longest}
        polls = {name: timedelta(seconds=it) for name, it in intervals.items() if it > 0}
        return {**super().settings_for_jpsi(), **polls}


JobExecutorConfig.DEFAULT = JobExecutorConfig()
