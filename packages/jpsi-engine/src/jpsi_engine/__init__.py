"""The engine that runs jobs: on batch systems, as processes of this machine, and on remote hosts.

`import jpsi` finds it by an entry point. `job_store` lists all jobs recorded on the disk of this machine.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine import job_store
    from jpsi_engine.array_expansion import ARRAY, array_specs
    from jpsi_engine.attribute_notices import *
    from jpsi_engine.batch import BatchEngine
    from jpsi_engine.host import *
    from jpsi_engine.job_fields import *
    from jpsi_engine.local import *
    from jpsi_engine.queue_limits import *

__all__ = [
    "ARRAY",
    "JOB_ATTRIBUTES",
    "JOB_FIELDS",
    "QUEUE_REASON",
    "BatchEngine",
    "BatchProgram",
    "Excess",
    "LocalEngine",
    "ProgramLostError",
    "QueueLimits",
    "RunningProgram",
    "Starter",
    "array_specs",
    "check_private_directory",
    "check_way",
    "describe_ignored",
    "describe_never",
    "describe_rounding",
    "excess_over_queues",
    "find_batch_program",
    "find_excess",
    "is_on_network",
    "job_field_problems",
    "job_store",
    "make_directory",
    "make_private_directory",
    "open_private",
    "reopen_queue",
    "retry_field_problems",
    "round_up",
    "sync_directory",
    "write_all",
    "write_synced",
]

if not TYPE_CHECKING:
    from jpsi.plugin.engine import door

    _rooms = [
        *("host", "local", "job_fields", "queue_limits", "attribute_notices", "array_expansion", "batch"),
        "job_store",
    ]
    __getattr__, __dir__ = door(__name__, __all__, [f"{__name__}.{it}" for it in _rooms])
