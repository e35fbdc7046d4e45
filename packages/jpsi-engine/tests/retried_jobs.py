"""Jobs that fail a number of times, for tests of the attribute `retry`."""

from __future__ import annotations

from pathlib import Path

from jpsi import Job, JobAttributes, JobSpec

#: Notes that it ran; fails until it has run as often as its argument says.
COMMAND = 'echo ran >>"$1"; test "$(wc -l <"$1")" -ge "$2" || exit 75'


def failing_job(proof: Path, runs: int, **retry: object) -> Job:
    """Return a job that fails with 75 until it has run so often."""
    attributes = JobAttributes(retry={75: 4, **retry})
    return Job(JobSpec("/bin/sh", ["-c", COMMAND, "sh", str(proof), str(runs)], attributes=attributes))


def runs_of(proof: Path) -> int:
    """Return how often the job with this proof ran."""
    return len(proof.read_text().splitlines()) if proof.exists() else 0
