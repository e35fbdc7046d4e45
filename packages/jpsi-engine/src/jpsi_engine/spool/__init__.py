"""The spool: the files on disk about jobs.

It holds intents, claims, consumed markers, arrays and history; docs/reference/spool.md draws it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.spool import attempts
    from jpsi_engine.spool.arrays import BLOCK, ArrayFiles, ArrayIntent, ArrayMember, read_link
    from jpsi_engine.spool.claims import (
        REVOKED,
        STARTER,
        UNNAMED,
        UNREADABLE,
        Claim,
        is_revoked,
        validate_claim,
    )
    from jpsi_engine.spool.damage import DAMAGE, array_problem, fallback_intent, folder_problems
    from jpsi_engine.spool.history import JobHistory
    from jpsi_engine.spool.intents import ArrayAttempt, JobAttempt, JobIntent
    from jpsi_engine.spool.job_records import ElementIds, JobRecord, JobRecords
    from jpsi_engine.spool.layout import Layout, array_tag, attempt_file, tag
    from jpsi_engine.spool.pruning import start_pruning
    from jpsi_engine.spool.requeue_codes import EVERY_FAILURE, read_requeue_codes, store_requeue_codes
    from jpsi_engine.spool.roots import WORK_DIRECTORY, folder_name, target_name
    from jpsi_engine.spool.shared_dependencies import (
        SHARED,
        decode_request,
        share_dependencies,
        store_dependencies,
    )
    from jpsi_engine.spool.spool import DEFERRED_FILE, FOUND, GIVEN_UP_FILE, Intent, Spool, stop_file
    from jpsi_engine.spool.status_values import decode_status, encode_status
    from jpsi_engine.spool.work_directories import SpoolFolder, find_spools, work_directory
else:
    # Listing jobs writes nothing.
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".": "attempts",
            ".arrays": "BLOCK ArrayFiles ArrayIntent ArrayMember read_link",
            ".claims": "REVOKED STARTER UNNAMED UNREADABLE Claim is_revoked validate_claim",
            ".damage": "DAMAGE array_problem fallback_intent folder_problems",
            ".history": "JobHistory",
            ".intents": "ArrayAttempt JobAttempt JobIntent",
            ".job_records": "ElementIds JobRecord JobRecords",
            ".layout": "Layout array_tag attempt_file tag",
            ".pruning": "start_pruning",
            ".requeue_codes": "EVERY_FAILURE read_requeue_codes store_requeue_codes",
            ".roots": "WORK_DIRECTORY folder_name target_name",
            ".shared_dependencies": "SHARED decode_request share_dependencies store_dependencies",
            ".spool": "DEFERRED_FILE FOUND GIVEN_UP_FILE Intent Spool stop_file",
            ".status_values": "decode_status encode_status",
            ".work_directories": "SpoolFolder find_spools work_directory",
        },
    )
