"""File transfer: staging plans, and copies with checksums, on this machine and to a remote host."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.transfer import staging_plan
    from jpsi_engine.transfer.job_files import *
    from jpsi_engine.transfer.progress import *
    from jpsi_engine.transfer.remote_plan import *
    from jpsi_engine.transfer.staging_plan import *
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".job_files": "open_job_files",
            ".progress": "ProgressReport ProgressCallback",
            ".remote_plan": (
                "RemotePlan RemoteTransfer local_target pending_transfers record_path split_plan"
            ),
            ".staging_plan": "Outcome Plan Transfer plan",
            ".": "staging_plan",
        },
    )
