"""Verdicts: pure functions that turn the evidence about a job into its status.

The order of the evidence does not matter.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.verdict import exit_phases, markers
    from jpsi_engine.verdict.batch_verdict import (
        Facts,
        active_status,
        judge,
        settles,
        unverified_status,
    )
    from jpsi_engine.verdict.exit_phases import (
        ALSO,
        ARGUMENTS,
        CANCEL,
        CLEANUP,
        DIRECTORY,
        ENVIRONMENT,
        EXECUTABLE,
        LAUNCH,
        NODES,
        NOT_EXECUTABLE_CODE,
        NOT_FOUND_CODE,
        POST_LAUNCH,
        PRE_LAUNCH,
        PROLOGUE,
        RAN,
        SETUP_CODE,
        SHELL,
        STAGE_IN,
        STAGE_OUT,
        STDERR,
        STDIN,
        STDOUT,
        TIMEOUT,
    )
    from jpsi_engine.verdict.marker_verdict import (
        SIGNAL_BASE,
        ProcessEnd,
        Stop,
        datetime_from_ns,
        exited_at_all,
        judge_process,
        never_ran,
    )
    from jpsi_engine.verdict.markers import (
        Marker,
        parse,
        scan,
    )
    from jpsi_engine.verdict.staging_outcome import (
        failed_staging_phase,
        parse_exit_phase,
        with_staging,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "batch_verdict": "Facts active_status judge settles unverified_status",
            "exit_phases": (
                "ALSO ARGUMENTS CANCEL CLEANUP DIRECTORY ENVIRONMENT EXECUTABLE LAUNCH NODES "
                "NOT_EXECUTABLE_CODE NOT_FOUND_CODE POST_LAUNCH PRE_LAUNCH PROLOGUE RAN SETUP_CODE SHELL "
                "STAGE_IN STAGE_OUT STDERR STDIN STDOUT TIMEOUT"
            ),
            "marker_verdict": (
                "ProcessEnd SIGNAL_BASE Stop datetime_from_ns exited_at_all judge_process never_ran"
            ),
            "markers": "Marker parse scan",
            "staging_outcome": "failed_staging_phase parse_exit_phase with_staging",
            "": "exit_phases markers",
        },
    )

__all__ = [
    "ALSO",
    "ARGUMENTS",
    "CANCEL",
    "CLEANUP",
    "DIRECTORY",
    "ENVIRONMENT",
    "EXECUTABLE",
    "LAUNCH",
    "NODES",
    "NOT_EXECUTABLE_CODE",
    "NOT_FOUND_CODE",
    "POST_LAUNCH",
    "PRE_LAUNCH",
    "PROLOGUE",
    "RAN",
    "SETUP_CODE",
    "SHELL",
    "SIGNAL_BASE",
    "STAGE_IN",
    "STAGE_OUT",
    "STDERR",
    "STDIN",
    "STDOUT",
    "TIMEOUT",
    "Facts",
    "Marker",
    "ProcessEnd",
    "Stop",
    "active_status",
    "datetime_from_ns",
    "exit_phases",
    "exited_at_all",
    "failed_staging_phase",
    "judge",
    "judge_process",
    "markers",
    "never_ran",
    "parse",
    "parse_exit_phase",
    "scan",
    "settles",
    "unverified_status",
    "with_staging",
]
