"""The exit codes of all commands of `jpsi`.

`jpsi run` exits with the exit code of its job, or with one of these if the job ended without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jpsi

# Of `jpsi plugins` and `jpsi config check`: a plugin or executor cannot be used.
UNUSABLE = 1
# Of `jpsi doctor`: jobs do not run.
UNHEALTHY = 1
# A mistake of the user in the command line or a document.
USAGE = 2
# As of timeout(1).
TIMEOUT = 124
# A failure of jpsi, or of the batch system.
JPSI = 125
# Of `jpsi fake`, with the codes of a shell.
NOT_EXECUTABLE = 126
NOT_FOUND = 127
# As shells report a program that Ctrl-C has ended: 128 + SIGINT.
CANCELLED = 130
# As shells report a program that wrote to a closed pipe: 128 + SIGPIPE.
BROKEN_PIPE = 141

#: The exit codes of `jpsi run` that are not the job's, for its help text.
MEANINGS = {
    USAGE: "a mistake in the command line or the job document; nothing was submitted",
    TIMEOUT: "the job exceeded its time limit",
    JPSI: "jpsi failed: job not started, or lost without an exit code",
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
