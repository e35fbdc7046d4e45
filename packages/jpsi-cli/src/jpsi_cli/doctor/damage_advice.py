"""Advises the user of `jpsi doctor` what to do about a job whose files are damaged.

A pure function: from the facts about the job to a sentence. It guards against jobs that run twice or are
forgotten.
"""

from __future__ import annotations

import jpsi
from jpsi_engine.job_store import DamagedJob, ShownJob, StoredJob

_MOVE_AWAY = "then move the folder away"


def advise_on_damage(found: DamagedJob, shown: ShownJob | jpsi.JpsiError | None = None) -> str:
    """Return what is wrong with a job or an array, what jpsi still knows of it, and what to do.

    Args:
        found: the job or the array.
        shown: what the batch system shows of a job that has not ended; None if it does not show the job, or
            the error that kept jpsi from finding out.
    """
    what = f"{found.name} in {found.folder}: {found.problem}"
    if found.job is None:
        return (
            f"{what}; the requests of its jobs are lost, and jpsi does not follow those that wait. Restore "
            f"the file from a backup, or see in the batch system what became of them, {_MOVE_AWAY}, and "
            "submit again what has not run"
        )
    status = found.job.status
    if status.final:
        code = "" if status.exit_code is None else f" with exit code {status.exit_code}"
        is_known = "it has completed" if status.state is jpsi.JobState.COMPLETED else f"it is {status.state}"
        return f"{what}; {is_known}{code}, and its output stays in the folder. Save that, {_MOVE_AWAY}"
    where = _describe_in_batch_system(found.job, shown)
    if found.job.spec.executable is not None:
        return (
            f"{what}; {where}; the rest of it is sound, and `jpsi wait {found.job.id}` finds out how it ends"
        )
    if isinstance(shown, ShownJob):
        return (
            f"{what}; {where}. jpsi cannot cancel it. Restore the file from a backup; or wait until it has "
            f"ended, {_end_advice(shown)}, save its output from the folder, {_MOVE_AWAY}"
        )
    return (
        f"{what}; {where}; jpsi will not submit it again, as it may have run. Restore the file from a "
        f"backup, or see in the batch system and in its output whether it has run, {_MOVE_AWAY}, and submit "
        "it again only if it has not"
    )


def _describe_in_batch_system(job: StoredJob, shown: ShownJob | jpsi.JpsiError | None) -> str:
    """Return the names by which the batch system knows a job, and what it shows of it."""
    named = {
        "native id": shown.native_id if isinstance(shown, ShownJob) else job.native_id,
        "tag": job.tag,
    }
    names = ", ".join(f"{name} {value}" for name, value in named.items() if value)
    name = f"{job.origin.name} ({names})" if names else job.origin.name
    if isinstance(shown, ShownJob):
        return f"{name} shows it as {shown.native_state}"
    if shown is None:
        return f"{name} does not show it"
    return f"jpsi cannot find out whether {name} shows it: {shown}"


def _end_advice(shown: ShownJob) -> str:
    if shown.cancel_command is None:
        return f"or end {shown.native_id} with the batch system's own command"
    return f"or end it: {shown.cancel_command}"
