"""The jobs on disk as commands use them: finds those that a word means, recalls and follows them.

A command imports this package only when it runs, since it imports the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import job_json
    from .array_limit import *
    from .deferred import *
    from .dependencies import *
    from .output_files import *
    from .owner import *
    from .recall import *
    from .repeated import *
    from .retries import *
    from .selection import *
    from .usage import *
    from .vain_waits import *
    from .waiting import *
else:
    # Most commands use a part of it, and `jpsi run` hardly any.
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".": "job_json",
            ".array_limit": "starts_bit_by_bit",
            ".deferred": (
                "await_dependencies await_submission settle_submissions start_waiting submit_deferred"
            ),
            ".dependencies": (
                "Dependencies configured_target dependency_words describe_dependencies describe_unmet "
                "describe_vain_waits naming_ended read_dependencies sort_dependencies"
            ),
            ".output_files": "Stream named_path was_not_opened",
            ".owner": "Owner find_owner name_settings",
            ".recall": (
                "RecalledJobs best_status listed_jobs recall_jobs recover_remote_jobs "
                "refresh_statuses report_failures settle_ends"
            ),
            ".repeated": "describe_repetitions find_repetitions has_failed was_not_submitted",
            ".retries": "follow_retries start_following",
            ".selection": (
                "array_sizes describe_predecessors exact_words index_list indices_text job_title "
                "job_with_index job_words match_jobs native_words select_job select_jobs "
                "select_live_jobs short_ids shown_ids split_indices"
            ),
            ".usage": "Amount Usage complete_usages read_usage",
            ".vain_waits": "settle_vain_waits",
            ".waiting": "reasons_reported wait_for_ends",
        },
    )
