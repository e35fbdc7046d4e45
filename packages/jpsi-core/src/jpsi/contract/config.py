"""The configuration that every executor has; a plugin's `config_class` extends it."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs


def must_be(what: str, is_valid: Callable[[Any], bool]) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    """Return a validator of a setting: for fields of the class that the hook `config_class` returns.

    >>> attrs.make_class("Config", {"size": attrs.field(validator=must_be("a number", str.isdigit))})("a")
    Traceback (most recent call last):
    ValueError: size must be a number, not 'a'
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not is_valid(value):
            raise ValueError(f"{attribute.name} must be {what}, not {value!r}")

    return validate


def _is_shell(value: object) -> bool:
    try:
        words = shlex.split(value) if isinstance(value, str) else []
    except ValueError:
        return False  # a quote is not closed
    return bool(words) and words[0].startswith("/")


_shell_words = must_be("the absolute path of a shell, with options or without", _is_shell)
_shell_lines = must_be(
    "a list of lines of shell",
    lambda it: isinstance(it, tuple) and all(isinstance(line, str) and "\0" not in line for line in it),
)
_names = must_be(
    "a list of names", lambda it: isinstance(it, tuple) and all(isinstance(name, str) for name in it)
)
_duration = must_be(
    "a timedelta that is not negative", lambda it: isinstance(it, timedelta) and it >= timedelta(0)
)
_interval = must_be("a timedelta above zero", lambda it: isinstance(it, timedelta) and it > timedelta(0))
_count = must_be("a whole number of at least 1", lambda it: isinstance(it, int) and it >= 1)


def _lines(value: object) -> object:
    """Convert the value to a tuple; a single text is not split into its letters."""
    return value if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)


# every submission names the shell
@functools.lru_cache
def _words(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


@attrs.frozen(slots=True, kw_only=True)
class ExecutorConfig:
    """The settings of an executor, whatever its backend."""

    #: The directory for jpsi's records of jobs; None is the user's state directory. If the transport leads to
    #: a host with its own files, it is a directory on that remote host.
    work_directory: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    #: The shell that runs the job's script: its absolute path, and options as words of a command line, such
    #: as `/bin/bash -l`. It must accept POSIX shell scripts.
    shell: str = attrs.field(default="/bin/sh", validator=_shell_words)
    #: Lines of POSIX shell that every job runs before its pre_launch, such as `module load openmpi`.
    #: Variables that they export reach the launcher and the job; if they fail, nothing is launched.
    prologue: tuple[str, ...] = attrs.field(default=(), converter=_lines, validator=_shell_lines)
    #: The runtime of containers that leave it open; None is the first on the PATH where the job runs.
    container_runtime: str | None = None
    #: The time that a cancelled job has between the request to end (TERM) and its end (KILL).
    kill_delay: timedelta = attrs.field(default=timedelta(seconds=5), validator=_duration)
    #: The time for which the files of a final job are kept.
    keep_time: timedelta = attrs.field(default=timedelta(days=30), validator=_duration)
    #: The number of jobs whose files are kept.
    keep_count: int = 100_000
    #: The largest number of the user's jobs that run at a time; others wait in `submit`. For `local` on this
    #: machine it limits the cores of the running jobs instead. None is no limit.
    max_active: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))

    @property
    def shell_command(self) -> list[str]:
        """The words of `shell`."""
        return list(_words(self.shell))


@attrs.frozen(slots=True, kw_only=True)
class BatchConfig(ExecutorConfig):
    """The settings of every executor that submits to a batch system."""

    #: The walltime of a job that asks for none; zero is no limit.
    default_duration: timedelta = attrs.field(default=timedelta(minutes=10), validator=_duration)
    #: The time after which a command of the batch system is considered hung and killed.
    command_timeout: timedelta = attrs.field(default=timedelta(seconds=60), validator=_interval)
    #: The time from a submission to the first poll of the batch system.
    shortest_interval: timedelta = attrs.field(default=timedelta(seconds=2), validator=_interval)
    #: The time between polls in the long run.
    longest_interval: timedelta = attrs.field(default=timedelta(seconds=30), validator=_interval)
    #: The time between polls in the long run while all jobs wait, if that is longer.
    waiting_interval: timedelta = attrs.field(default=timedelta(minutes=5), validator=_interval)
    #: The time for which jpsi does not trust a batch system that does not mention a job, and the time that a
    #: file written on another host may take to become visible on this machine. If the work directory is on a
    #: local disk, files are visible at once, and only the first meaning applies.
    grace: timedelta = attrs.field(default=timedelta(seconds=90), validator=_duration)
    #: The number of submissions that are sent at a time.
    submit_concurrency: int = attrs.field(default=4, validator=_count)
    #: The largest number of jobs that `submit_many` submits as one array; None leaves it to the batch system,
    #: 1 submits each job by itself.
    array_size: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))
    #: The quota of the user's jobs, waiting or running, in the batch system at a time; `submit` waits until
    #: another fits. None is no limit.
    max_queued: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))
    #: The queues for jobs whose `queue_name` is `auto`, the preferred one first; others follow these.
    queue_order: tuple[str, ...] = attrs.field(default=(), converter=_lines, validator=_names)
    #: True if the work directory is on a network file system, where this machine gets no notice of what other
    #: machines write; None detects it.
    network_files: bool | None = None
