"""Verdicts: pure functions that turn the evidence about a job into its status.

The order of the evidence does not matter.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.verdict import exit_phases, markers
    from jpsi_engine.verdict.batch_verdict import *
    from jpsi_engine.verdict.exit_phases import *
    from jpsi_engine.verdict.job_identity import *
    from jpsi_engine.verdict.marker_verdict import *
    from jpsi_engine.verdict.markers import *
    from jpsi_engine.verdict.retries import *
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".batch_verdict": "Facts active_status is_conclusive judge unverified_status",
            ".exit_phases": (
                "ALSO ARGUMENTS CANCEL CLEANUP CONTAINER DIRECTORY ENVIRONMENT ENVIRONMENT_SETUP "
                "EXECUTABLE LAUNCH MEMORY_KILL NODES NOT_EXECUTABLE_CODE NOT_FOUND_CODE POST_LAUNCH "
                "PRE_LAUNCH PROLOGUE RAN SETUP_CODE SHELL STAGE_IN STAGE_OUT STDERR STDIN STDOUT TIMEOUT"
            ),
            ".job_identity": "Owner is_own is_refused owner_of",
            ".marker_verdict": (
                "SIGNAL_BASE ProcessEnd Stop add_staging_outcome datetime_from_ns "
                "failed_staging_phase has_exit_marker judge_process never_ran_status parse_exit_phase"
            ),
            ".markers": "Marker name_with_memory of_last_run parse restart_count scan",
            ".retries": "Retry decide_retry reason_of retry_entry_problems retry_problems",
            ".": "exit_phases markers",
        },
    )
