"""The exit codes of `jpsi`: for `jpsi run` that of the job, or one for an end without an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jpsi

# Of `jpsi plugins` and `jpsi config check`.
UNUSABLE = 1
# Of `jpsi doctor`.
UNHEALTHY = 1
USAGE = 2
TIMEOUT = 124
JPSI = 125
# Of `jpsi fake`, as shells have them.
NOT_EXECUTABLE = 126
NOT_FOUND = 127
CANCELLED = 130
# What a shell reports of a program that wrote to a closed pipe: 128 + SIGPIPE.
BROKEN_PIPE = 141

#: The codes that `jpsi run` itself chooses, for people.
MEANINGS = {
    USAGE: "a mistake in the command line or the job document; nothing was submitted",
    TIMEOUT: "the job exceeded its time limit",
    JPSI: "jpsi failed: no such executor, job not started, or lost without an exit code",
    CANCELLED: "the job was cancelled: by Ctrl-C, SIGTERM or SIGHUP, or by another program",
    BROKEN_PIPE: "the reader of the output has gone, as after `| head`; jpsi cancelled the job",
}

_LARGEST = 255


def for_status(status: jpsi.JobStatus) -> int:
    """Return the exit code for a final status."""
    import jpsi  # noqa: PLC0415  `jpsi --help` shows the table above without waiting for the library

    if status.state is jpsi.JobState.COMPLETED:
        return 0
    if status.state is jpsi.JobState.CANCELED:
        return CANCELLED
    if status.reason is jpsi.Reason.TIMEOUT:
        return TIMEOUT
    # A failed job must not look like a success, whatever exit code its batch system reports.
    code = status.exit_code
    return code if code is not None and 0 < code <= _LARGEST else JPSI
