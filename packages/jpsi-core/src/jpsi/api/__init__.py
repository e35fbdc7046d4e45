"""The implementation behind `Job` and `JobExecutor`.

Validation, submission, batching, observers, facts about the batch system, import of submit scripts.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.api.batching import (
        Batching,
    )
    from jpsi.api.observers import (
        Observers,
    )
    from jpsi.api.script_import import (
        Conversion,
        read_script,
    )
    from jpsi.api.submission import (
        JobSubmitter,
        by_id,
        check_job,
        failure,
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
            "observers": "Observers",
            "script_import": "Conversion read_script",
            "submission": "JobSubmitter by_id check_job failure",
            "system": "System",
            "validation": "Validation",
        },
    )

__all__ = [
    "Batching",
    "Conversion",
    "JobSubmitter",
    "Observers",
    "System",
    "Validation",
    "by_id",
    "check_job",
    "failure",
    "read_script",
]
