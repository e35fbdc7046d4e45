"""What stands behind `Job` and `JobExecutor`.

Validation, requests about many jobs, batching, dependencies, observers.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.api.batching import (
        Combining,
    )
    from jpsi.api.bulk import (
        Many,
        by_id,
        check_job,
        not_done,
    )
    from jpsi.api.no_transport import (
        NoTransport,
    )
    from jpsi.api.observers import (
        Observing,
    )
    from jpsi.api.script_import import (
        Conversion,
        read_script,
    )
    from jpsi.api.system import (
        System,
    )
    from jpsi.api.validation import (
        Checking,
    )
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "batching": "Combining",
            "bulk": "Many by_id check_job not_done",
            "no_transport": "NoTransport",
            "observers": "Observing",
            "script_import": "Conversion read_script",
            "system": "System",
            "validation": "Checking",
        },
    )

__all__ = [
    "Checking",
    "Combining",
    "Conversion",
    "Many",
    "NoTransport",
    "Observing",
    "System",
    "by_id",
    "check_job",
    "not_done",
    "read_script",
]
