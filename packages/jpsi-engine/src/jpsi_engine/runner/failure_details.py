"""Adds details from a job's folder to its final status: the file or program at fault, or the error output.

Unlike the rest of this room it renders no script: it reads what the script has left. A client that publishes
a final status passes it through here, so that the message of a failed job says why it failed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import attrs

from jpsi import JobStatus
from jpsi.plugin import JobState, Reason
from jpsi_engine.verdict import STAGE_IN, exit_phases, failed_staging_phase

if TYPE_CHECKING:
    from jpsi_engine.spool import Spool

# The field of the spec that is at fault when the runner ends in a phase.
_FIELDS_AT_FAULT = {
    exit_phases.DIRECTORY: "directory",
    exit_phases.STDIN: "stdin_path",
    exit_phases.STDOUT: "stdout_path",
    exit_phases.STDERR: "stderr_path",
    exit_phases.EXECUTABLE: "executable",
    exit_phases.PRE_LAUNCH: "pre_launch",
}

#: The phases of which the launcher's log says why they failed.
LOGGED_PHASES = (exit_phases.LAUNCH, exit_phases.ENVIRONMENT_SETUP)
#: The bytes at the end of an error output that become a message.
MAX_DETAIL_BYTES = 4096


def add_failure_details(spool: Spool, job_id: str, attempt: int, status: JobStatus) -> JobStatus:
    """Return a final status whose message names the cause, if the job's folder shows it.

    The cause is the field of the spec that could not be used, the output of the launcher or of the staging
    commands, or the marker that is missing. A stage-out or cleanup that failed is added.
    """
    if status.state is JobState.COMPLETED and not failed_staging_phase(status):
        return status
    phase = status.metadata.get("phase", "")
    if status.reason is Reason.LOST and spool.has_begun(job_id, attempt):
        cause = f"it began to run, and left no exit marker in {spool.events}"
    elif phase in LOGGED_PHASES:
        # here and below: listing jobs renders no script, and most ends need none of these files
        from jpsi_engine.runner.script import launcher_log  # noqa: PLC0415

        cause = _read_end(launcher_log(spool.folder(job_id), attempt))
    elif phase == STAGE_IN:
        cause = _read_staging_log(spool, job_id, attempt)
    else:
        cause = _spec_value_at_fault(spool, job_id, phase)
    sentences = [f"{status.message}: {cause}" if cause else status.message]
    if failed_phase := failed_staging_phase(status):
        output = _read_staging_log(spool, job_id, attempt)
        sentences.append(f"{failed_phase} failed: {output}" if output else f"{failed_phase} failed")
    return attrs.evolve(status, message="; ".join(it for it in sentences if it) or None)


def _spec_value_at_fault(spool: Spool, job_id: str, phase: str) -> str:
    field = _FIELDS_AT_FAULT.get(phase)
    intent = None if field is None else spool.last_intent(job_id)
    if intent is None or field is None:
        return ""
    return intent.content["spec"].get(field) or intent.content.get(field) or ""


def _read_staging_log(spool: Spool, job_id: str, attempt: int) -> str:
    from jpsi_engine.runner import staging  # noqa: PLC0415

    return _read_end(staging.log_file(spool.folder(job_id), attempt))


def _read_end(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  text, as all of the spool's paths
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_DETAIL_BYTES))
            return file.read(MAX_DETAIL_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
