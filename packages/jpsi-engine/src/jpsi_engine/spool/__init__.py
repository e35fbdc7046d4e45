"""The spool: the files on disk about jobs.

It holds intents, claims, consumed markers, arrays and history; docs/reference/spool.md draws it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.spool import attempts
    from jpsi_engine.spool.arrays import *
    from jpsi_engine.spool.claims import *
    from jpsi_engine.spool.damage import *
    from jpsi_engine.spool.history import *
    from jpsi_engine.spool.intents import *
    from jpsi_engine.spool.job_records import *
    from jpsi_engine.spool.layout import *
    from jpsi_engine.spool.pruning import *
    from jpsi_engine.spool.requeue_codes import *
    from jpsi_engine.spool.retries import *
    from jpsi_engine.spool.roots import *
    from jpsi_engine.spool.shared_dependencies import *
    from jpsi_engine.spool.spool import *
    from jpsi_engine.spool.status_values import *
    from jpsi_engine.spool.work_directories import *
else:
    # Listing jobs writes nothing.
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".": "attempts",
            ".arrays": "BLOCK ArrayFiles ArrayIntent ArrayMember read_link",
            ".claims": "REVOKED UNNAMED UNREADABLE Claim claimant is_revoked starter_of validate_claim",
            ".damage": "DAMAGE array_problem fallback_intent folder_problems",
            ".history": "JobHistory",
            ".intents": "ArrayAttempt JobAttempt JobIntent",
            ".job_records": "ElementIds JobRecord JobRecords",
            ".layout": "Layout array_tag attempt_file tag",
            ".pruning": "start_pruning",
            ".requeue_codes": "EVERY_FAILURE read_requeue_codes store_requeue_codes",
            ".retries": "reached_status read_first_array read_retry record_end retry_metadata status_before",
            ".roots": "WORK_DIRECTORY folder_name target_name",
            ".shared_dependencies": "SHARED decode_request share_dependencies store_dependencies",
            ".spool": (
                "DEFERRED_FILE FOUND GIVEN_UP_FILE RETRY_KEY Intent RetryCancelledError Spool final_file "
                "stop_file"
            ),
            ".status_values": "decode_status encode_status",
            ".work_directories": "SpoolFolder find_spools work_directory",
        },
    )
