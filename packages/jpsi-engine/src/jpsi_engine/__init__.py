"""The engine that runs jobs: on batch systems, as processes of this machine, and on remote hosts.

`import jpsi` finds it by an entry point. `job_store` lists all jobs recorded on the disk of this machine.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine import job_store
    from jpsi_engine.array_expansion import array_specs
    from jpsi_engine.batch import BatchEngine
    from jpsi_engine.host import (
        check_private_directory,
        check_way,
        is_on_network,
        make_directory,
        make_private_directory,
        open_private,
    )
    from jpsi_engine.job_fields import JOB_ATTRIBUTES, JOB_FIELDS, job_field_problems
    from jpsi_engine.local import (
        BatchProgram,
        LocalEngine,
        ProgramLostError,
        RunningProgram,
        Starter,
        find_batch_program,
    )
    from jpsi_engine.queue_limits import (
        QUEUE_REASON,
        Excess,
        describe_never,
        excess_over_queues,
        find_excess,
        reopen_queue,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".": "job_store",
            ".array_expansion": "array_specs",
            ".batch": "BatchEngine",
            ".host": (
                "check_private_directory check_way is_on_network make_directory make_private_directory "
                "open_private"
            ),
            ".job_fields": "JOB_ATTRIBUTES JOB_FIELDS job_field_problems",
            ".local": ("BatchProgram LocalEngine ProgramLostError RunningProgram Starter find_batch_program"),
            ".queue_limits": (
                "QUEUE_REASON Excess describe_never excess_over_queues find_excess reopen_queue"
            ),
        },
    )

__all__ = [
    "JOB_ATTRIBUTES",
    "JOB_FIELDS",
    "QUEUE_REASON",
    "BatchEngine",
    "BatchProgram",
    "Excess",
    "LocalEngine",
    "ProgramLostError",
    "RunningProgram",
    "Starter",
    "array_specs",
    "check_private_directory",
    "check_way",
    "describe_never",
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
]
