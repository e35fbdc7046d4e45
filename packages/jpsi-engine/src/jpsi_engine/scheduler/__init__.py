"""The batch system.

Hooks make the commands, and their output becomes snapshots that the processes of one user share.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.scheduler.absences import (
        Absences,
        attempt_name,
    )
    from jpsi_engine.scheduler.backend import (
        Backend,
    )
    from jpsi_engine.scheduler.id_spelling import (
        IdSpelling,
    )
    from jpsi_engine.scheduler.job_view import (
        Absence,
        JobView,
        is_final,
    )
    from jpsi_engine.scheduler.lookup import (
        find_intents,
        warn_of_damage,
    )
    from jpsi_engine.scheduler.mentions import (
        Mentions,
    )
    from jpsi_engine.scheduler.native_ids import (
        NativeIds,
        element_intent,
        intent_tag,
    )
    from jpsi_engine.scheduler.outage import (
        Outage,
    )
    from jpsi_engine.scheduler.poll_interval import (
        PollInterval,
    )
    from jpsi_engine.scheduler.queue_poll import (
        QueuePoll,
        is_recent,
        log_failed_query,
    )
    from jpsi_engine.scheduler.reused_ids import (
        reused_native_ids,
    )
    from jpsi_engine.scheduler.shared_poll import (
        SharedPoll,
    )
    from jpsi_engine.scheduler.snapshot import (
        Snapshot,
        reuse_observations,
    )
    from jpsi_engine.scheduler.throttle import (
        Throttle,
        make_throttle,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "absences": "Absences attempt_name",
            "backend": "Backend",
            "id_spelling": "IdSpelling",
            "job_view": "Absence JobView is_final",
            "lookup": "find_intents warn_of_damage",
            "mentions": "Mentions",
            "native_ids": "NativeIds element_intent intent_tag",
            "outage": "Outage",
            "poll_interval": "PollInterval",
            "queue_poll": "QueuePoll is_recent log_failed_query",
            "reused_ids": "reused_native_ids",
            "shared_poll": "SharedPoll",
            "snapshot": "Snapshot reuse_observations",
            "throttle": "Throttle make_throttle",
        },
    )

__all__ = [
    "Absence",
    "Absences",
    "Backend",
    "IdSpelling",
    "JobView",
    "Mentions",
    "NativeIds",
    "Outage",
    "PollInterval",
    "QueuePoll",
    "SharedPoll",
    "Snapshot",
    "Throttle",
    "attempt_name",
    "element_intent",
    "find_intents",
    "intent_tag",
    "is_final",
    "is_recent",
    "log_failed_query",
    "make_throttle",
    "reuse_observations",
    "reused_native_ids",
    "warn_of_damage",
]
