"""What to do about a job whose files are damaged: from what is known of it to a sentence. Pure."""

from __future__ import annotations

import jpsi
from jpsi.spooled import Damaged


def damage_advice(found: Damaged) -> str:
    """Return what is wrong with a job or an array, what is known of it all the same, and what to do."""
    what = f"{found.name} in {found.folder}: {found.problem}"
    away = "then move the folder away"
    if found.job is None:
        return (
            f"{what}; what its jobs were asked is lost, and those that wait are not followed. Restore the "
            f"file from a backup, or see in the batch system what became of them, {away}, and submit again "
            "what has not run"
        )
    status, native_id = found.job.status, found.job.native_id
    if status.final:
        code = "" if status.exit_code is None else f" with exit code {status.exit_code}"
        is_known = "it has completed" if status.state is jpsi.JobState.COMPLETED else f"it is {status.state}"
        return f"{what}; {is_known}{code}, and its output stays in the folder. Save that, {away}"
    if found.job.spec.executable is not None:
        return f"{what}; the rest of it is sound, and `jpsi wait {found.job.id}` finds out how it ends"
    known = "" if native_id is None else f" ({found.job.origin.name} knows it as {native_id})"
    return (
        f"{what}; it will not be submitted again, as it may have run. Restore the file from a backup, or see "
        f"in the batch system{known} and in its output whether it has run, {away}, and submit it again only "
        "if it has not"
    )
