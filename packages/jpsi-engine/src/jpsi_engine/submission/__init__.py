"""Submits.

Prepares a job, writes its intent, hands it off, records its native id; many at once, and under limits.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.submission import control
    from jpsi_engine.submission.array_elements import (
        Elements,
    )
    from jpsi_engine.submission.bulk import (
        Bulk,
    )
    from jpsi_engine.submission.control import (
        Changing,
    )
    from jpsi_engine.submission.dependency_states import (
        Predecessors,
    )
    from jpsi_engine.submission.handoff import (
        Sending,
    )
    from jpsi_engine.submission.run_host import (
        Listening,
        RemoteStaging,
        Side,
        TakenError,
        ThisSide,
        UnsentError,
    )
    from jpsi_engine.submission.submission import (
        Submitting,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "array_elements": "Elements",
            "bulk": "Bulk",
            "control": "Changing",
            "dependency_states": "Predecessors",
            "handoff": "Sending",
            "run_host": "Listening RemoteStaging Side TakenError ThisSide UnsentError",
            "submission": "Submitting",
            "": "control",
        },
    )

__all__ = [
    "Bulk",
    "Changing",
    "Elements",
    "Listening",
    "Predecessors",
    "RemoteStaging",
    "Sending",
    "Side",
    "Submitting",
    "TakenError",
    "ThisSide",
    "UnsentError",
    "control",
]
