"""Files that move.

Plans of what is staged, copies with checksums, on this machine and to a remote host.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.transfer import staging_plan
    from jpsi_engine.transfer.job_files import (
        open_job_files,
    )
    from jpsi_engine.transfer.progress import (
        Telling,
        Told,
    )
    from jpsi_engine.transfer.remote_staging import (
        Carriage,
        FarPlan,
        far_plan,
        left,
        record,
        recorded,
        where,
    )
    from jpsi_engine.transfer.staging_plan import (
        Outcome,
        Plan,
        Transfer,
        plan,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "job_files": "open_job_files",
            "progress": "Telling Told",
            "remote_staging": "Carriage FarPlan far_plan left record recorded where",
            "staging_plan": "Outcome Plan Transfer plan",
            "": "staging_plan",
        },
    )

__all__ = [
    "Carriage",
    "FarPlan",
    "Outcome",
    "Plan",
    "Telling",
    "Told",
    "Transfer",
    "far_plan",
    "left",
    "open_job_files",
    "plan",
    "record",
    "recorded",
    "staging_plan",
    "where",
]
