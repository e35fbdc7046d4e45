"""The implementation behind `Job` and `JobExecutor`.

Validation, requests about many jobs, batching, dependencies, observers.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.api.batching import (
        Batching,
    )
    from jpsi.api.bulk import (
        BulkOperations,
        by_id,
        check_job,
        not_done,
    )
    from jpsi.api.no_transport import (
        NoTransport,
    )
    from jpsi.api.observers import (
        Observers,
    )
    from jpsi.api.script_import import (
        Conversion,
        read_script,
    )
    from jpsi.api.system import (
        System,
    )
    from jpsi.api.validation import (
        Validation,
    )
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "batching": "Batching",
            "bulk": "BulkOperations by_id check_job not_done",
            "no_transport": "NoTransport",
            "observers": "Observers",
            "script_import": "Conversion read_script",
            "system": "System",
            "validation": "Validation",
        },
    )

__all__ = [
    "Batching",
    "BulkOperations",
    "Conversion",
    "NoTransport",
    "Observers",
    "System",
    "Validation",
    "by_id",
    "check_job",
    "not_done",
    "read_script",
]
