"""The spool: the files on disk about jobs.

It holds intents, claims, consumed markers, arrays and history; docs/reference/spool.md draws it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.spool import attempts
    from jpsi_engine.spool.arrays import (
        BLOCK,
        ArrayFiles,
        ArrayIntent,
        ArrayMember,
        read_link,
    )
    from jpsi_engine.spool.claims import (
        REVOKED,
        UNNAMED,
        UNREADABLE,
        Claim,
        validate_claim,
    )
    from jpsi_engine.spool.damage import (
        DAMAGE,
        array_problem,
        fallback_intent,
        folder_problems,
    )
    from jpsi_engine.spool.history import (
        JobHistory,
    )
    from jpsi_engine.spool.intents import (
        ArrayAttempt,
        JobAttempt,
        JobIntent,
    )
    from jpsi_engine.spool.job_records import (
        ElementIds,
        JobRecord,
        JobRecords,
    )
    from jpsi_engine.spool.layout import (
        Layout,
        attempt_file,
    )
    from jpsi_engine.spool.pruning import (
        prune,
    )
    from jpsi_engine.spool.requeue_codes import (
        EVERY_FAILURE,
        read_requeue_codes,
        store_requeue_codes,
    )
    from jpsi_engine.spool.roots import (
        WORK_DIRECTORY,
        folder_name,
        target_name,
    )
    from jpsi_engine.spool.spool import (
        FOUND,
        Intent,
        Spool,
        stop_file,
    )
    from jpsi_engine.spool.tags import (
        array_tag,
        tag,
    )
    from jpsi_engine.spool.work_directories import (
        SpoolFolder,
        find_spools,
        work_directory,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "arrays": "ArrayFiles ArrayIntent BLOCK ArrayMember read_link",
            "claims": "Claim REVOKED UNNAMED UNREADABLE validate_claim",
            "damage": "DAMAGE array_problem fallback_intent folder_problems",
            "history": "JobHistory",
            "intents": "JobAttempt ArrayAttempt JobIntent",
            "job_records": "ElementIds JobRecord JobRecords",
            "layout": "Layout attempt_file",
            "pruning": "prune",
            "requeue_codes": "EVERY_FAILURE store_requeue_codes read_requeue_codes",
            "roots": "WORK_DIRECTORY folder_name target_name",
            "spool": "FOUND Intent Spool stop_file",
            "tags": "array_tag tag",
            "work_directories": "SpoolFolder find_spools work_directory",
            "": "attempts",
        },
    )

__all__ = [
    "BLOCK",
    "DAMAGE",
    "EVERY_FAILURE",
    "FOUND",
    "REVOKED",
    "UNNAMED",
    "UNREADABLE",
    "WORK_DIRECTORY",
    "ArrayAttempt",
    "ArrayFiles",
    "ArrayIntent",
    "ArrayMember",
    "Claim",
    "ElementIds",
    "Intent",
    "JobAttempt",
    "JobHistory",
    "JobIntent",
    "JobRecord",
    "JobRecords",
    "Layout",
    "Spool",
    "SpoolFolder",
    "array_problem",
    "array_tag",
    "attempt_file",
    "attempts",
    "fallback_intent",
    "find_spools",
    "folder_name",
    "folder_problems",
    "prune",
    "read_link",
    "read_requeue_codes",
    "stop_file",
    "store_requeue_codes",
    "tag",
    "target_name",
    "validate_claim",
    "work_directory",
]
