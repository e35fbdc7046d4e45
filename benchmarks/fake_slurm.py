"""A Slurm that is not there, in whose queue jobs wait for ever: what a measurement costs is not its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from jpsi.fakes import FakeScheduler, on_path


@contextlib.contextmanager
def fake_slurm() -> Iterator[None]:
    """Within the block, the commands on PATH are those of a fake Slurm, which this process answers."""
    with FakeScheduler(slots=0) as scheduler, on_path("slurm", scheduler):
        yield
