"""The batch system.

Hooks become commands, and answers become snapshots that processes of one user share.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.scheduler.absences import (
        MissingJobs,
        name_of,
    )
    from jpsi_engine.scheduler.backend import (
        Backend,
    )
    from jpsi_engine.scheduler.id_spelling import (
        Spelling,
    )
    from jpsi_engine.scheduler.job_view import (
        Absence,
        Tracked,
        is_final,
    )
    from jpsi_engine.scheduler.lookup import (
        intents_of,
        warn_of_damage,
    )
    from jpsi_engine.scheduler.mentions import (
        Said,
    )
    from jpsi_engine.scheduler.native_ids import (
        NativeIds,
        element_intent,
        intent_tag,
    )
    from jpsi_engine.scheduler.outage import (
        Silence,
    )
    from jpsi_engine.scheduler.poll_interval import (
        Poller,
    )
    from jpsi_engine.scheduler.queue_poll import (
        Asking,
        is_recent,
        tell,
    )
    from jpsi_engine.scheduler.reused_ids import (
        given_anew,
    )
    from jpsi_engine.scheduler.shared_poll import (
        Sharing,
    )
    from jpsi_engine.scheduler.snapshot import (
        Answer,
        compared,
    )
    from jpsi_engine.scheduler.throttle import (
        Admission,
        admission,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "absences": "MissingJobs name_of",
            "backend": "Backend",
            "id_spelling": "Spelling",
            "job_view": "Absence Tracked is_final",
            "lookup": "intents_of warn_of_damage",
            "mentions": "Said",
            "native_ids": "NativeIds element_intent intent_tag",
            "outage": "Silence",
            "poll_interval": "Poller",
            "queue_poll": "Asking is_recent tell",
            "reused_ids": "given_anew",
            "shared_poll": "Sharing",
            "snapshot": "Answer compared",
            "throttle": "Admission admission",
        },
    )

__all__ = [
    "Absence",
    "Admission",
    "Answer",
    "Asking",
    "Backend",
    "MissingJobs",
    "NativeIds",
    "Poller",
    "Said",
    "Sharing",
    "Silence",
    "Spelling",
    "Tracked",
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
