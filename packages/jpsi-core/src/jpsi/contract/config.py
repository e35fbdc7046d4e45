"""The configuration that every executor has; a plugin's `config_class` extends it."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs


def _shell_words(_: object, __: object, value: object) -> None:
    try:
        words = shlex.split(value) if isinstance(value, str) else []
    except ValueError:
        words = []  # a quote without its partner
    if not words or not words[0].startswith("/"):
        msg = f"shell must be the absolute path of a shell, with options or without, not {value!r}"
        raise ValueError(msg)


def _lines(value: object) -> object:
    """A tuple of what was given; one text is not taken for its letters."""
    return value if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)


def _shell_lines(_: object, __: object, value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(it, str) and "\0" not in it for it in value):
        msg = f"prologue must be a list of lines of shell, not {value!r}"
        raise ValueError(msg)


def _duration(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, timedelta) or value < timedelta(0):
        msg = f"{attribute.name} must be a timedelta that is not negative, not {value!r}"
        raise ValueError(msg)


def _interval(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, timedelta) or value <= timedelta(0):
        msg = f"{attribute.name} must be a timedelta of some length, not {value!r}"
        raise ValueError(msg)


def _count(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, int) or value < 1:
        msg = f"{attribute.name} must be a whole number of at least 1, not {value!r}"
        raise ValueError(msg)


# every submission names the shell
@functools.lru_cache
def _words(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


@attrs.frozen(slots=True, kw_only=True)
class ExecutorConfig:
    """What can be set for an executor, whatever its backend."""

    #: Where jpsi keeps what it must remember; None is the user's state directory. Where the transport has
    #: files of its own, it is a directory over there.
    work_directory: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    #: The shell that runs the job's script: its absolute path, and options as words of a command line, such
    #: as `/bin/bash -l`. It must take a script of POSIX shell.
    shell: str = attrs.field(default="/bin/sh", validator=_shell_words)
    #: Lines of POSIX shell that every job runs before its pre_launch, such as `module load openmpi`. What
    #: they export reaches the launcher and the job; if they fail, or end the shell, nothing is launched.
    prologue: tuple[str, ...] = attrs.field(default=(), converter=_lines, validator=_shell_lines)
    #: How long a cancelled job has between the request to end (TERM) and its end (KILL).
    kill_delay: timedelta = attrs.field(default=timedelta(seconds=5), validator=_duration)
    #: How long the files of a final job are kept.
    keep_time: timedelta = attrs.field(default=timedelta(days=30), validator=_duration)
    #: How many jobs' files are kept.
    keep_count: int = 100_000
    #: How many of the user's jobs run at a time; others wait in `submit` for their turn. For `local` on this
    #: machine it is how many cores those have that run. None is no limit.
    max_active: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))

    @property
    def shell_command(self) -> list[str]:
        """The words of `shell`."""
        return list(_words(self.shell))


@attrs.frozen(slots=True, kw_only=True)
class BatchConfig(ExecutorConfig):
    """What can be set for every executor that submits to a batch system."""

    #: The time limit of a job that asks for none; zero is no limit.
    default_duration: timedelta = attrs.field(default=timedelta(minutes=10), validator=_duration)
    #: When a command of the batch system is taken for hung and killed.
    command_timeout: timedelta = attrs.field(default=timedelta(seconds=60), validator=_interval)
    #: How soon after a submission the batch system is first asked for states.
    shortest_interval: timedelta = attrs.field(default=timedelta(seconds=2), validator=_interval)
    #: How often it is asked in the long run.
    longest_interval: timedelta = attrs.field(default=timedelta(seconds=30), validator=_interval)
    #: How long a batch system that does not mention a job is not believed, and how long a file that was
    #: written elsewhere may take to show here. Where the work directory is on a disk of this machine, files
    #: show at once, and only the former is waited for.
    grace: timedelta = attrs.field(default=timedelta(seconds=90), validator=_duration)
    #: How many submissions are sent at a time.
    submit_concurrency: int = attrs.field(default=4, validator=_count)
    #: How many jobs at most `submit_many` submits as one array; None leaves it to the batch system, 1 submits
    #: each by itself.
    array_size: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))
    #: How many of the user's jobs, waiting or running, the batch system has at a time; `submit` waits until
    #: there is room for another. None is no limit.
    max_queued: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))
    #: Whether the work directory is on a network file system, where nothing announces what other machines
    #: write; None finds out.
    network_files: bool | None = None
