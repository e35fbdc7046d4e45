"""The batch system.

Hooks make the commands, and their output becomes snapshots that the processes of one user share.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.scheduler.absences import (
        Absences,
        name_of,
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
        intents_of,
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
        tell,
    )
    from jpsi_engine.scheduler.reused_ids import (
        given_anew,
    )
    from jpsi_engine.scheduler.shared_poll import (
        SharedPoll,
    )
    from jpsi_engine.scheduler.snapshot import (
        Snapshot,
        compared,
    )
    from jpsi_engine.scheduler.throttle import (
        Throttle,
        admission,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "absences": "Absences name_of",
            "backend": "Backend",
            "id_spelling": "IdSpelling",
            "job_view": "Absence JobView is_final",
            "lookup": "intents_of warn_of_damage",
            "mentions": "Mentions",
            "native_ids": "NativeIds element_intent intent_tag",
            "outage": "Outage",
            "poll_interval": "PollInterval",
            "queue_poll": "QueuePoll is_recent tell",
            "reused_ids": "given_anew",
            "shared_poll": "SharedPoll",
            "snapshot": "Snapshot compared",
            "throttle": "Throttle admission",
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
    "admission",
    "compared",
    "element_intent",
    "given_anew",
    "intent_tag",
    "intents_of",
    "is_final",
    "is_recent",
    "name_of",
    "tell",
    "warn_of_damage",
]
