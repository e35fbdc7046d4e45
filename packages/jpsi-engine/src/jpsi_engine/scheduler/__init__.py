"""The batch system.

Hooks make the commands, and their output becomes snapshots that the processes of one user share. Submissions
queue until the quota admits their jobs.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.scheduler.absences import *
    from jpsi_engine.scheduler.backend import *
    from jpsi_engine.scheduler.id_spelling import *
    from jpsi_engine.scheduler.job_view import *
    from jpsi_engine.scheduler.native_ids import (
        NativeIds,
        element_intent,
        find_intents,
        intent_tag,
        reused_native_ids,
        warn_of_damage,
    )
    from jpsi_engine.scheduler.poll_interval import *
    from jpsi_engine.scheduler.queue_poll import *
    from jpsi_engine.scheduler.quota import *
    from jpsi_engine.scheduler.retry_loop import RetryLoop
    from jpsi_engine.scheduler.shared_poll import *
    from jpsi_engine.scheduler.snapshot import *
    from jpsi_engine.scheduler.submit_queue import *
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".absences": "Absences attempt_name",
            ".backend": "Backend ids_per_accounting log_failed_query query_accounting split_by_array",
            ".id_spelling": "element_id_speller",
            ".job_view": "Absence JobView is_final",
            ".native_ids": (
                "NativeIds element_intent find_intents intent_tag reused_native_ids warn_of_damage"
            ),
            ".poll_interval": "Outage PollInterval",
            ".queue_poll": "QueuePoll",
            ".quota": "Throttle make_throttle",
            ".retry_loop": "RetryLoop",
            ".shared_poll": "SharedPoll",
            ".snapshot": "Mentions Snapshot reuse_observations",
            ".submit_queue": "QuotaReached SubmissionCancelled SubmitQueue not_admitted_error",
        },
    )
