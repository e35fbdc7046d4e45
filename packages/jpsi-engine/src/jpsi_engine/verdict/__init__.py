"""Verdicts: pure functions that turn the evidence about a job into its status.

The order of the evidence does not matter.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.verdict import exit_phases, markers
    from jpsi_engine.verdict.batch_verdict import (
        Facts,
        begun,
        judge,
        settles,
        unverified,
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
    from jpsi_engine.verdict.job_identity import (
        Owner,
        is_own,
        is_refused,
        owner_of,
    )
    from jpsi_engine.verdict.marker_verdict import (
        SIGNAL_BASE,
        ProcessEnd,
        Stop,
        conclude,
        exited_at_all,
        from_ns,
        never_ran,
    )
    from jpsi_engine.verdict.markers import (
        Marker,
        parse,
        scan,
    )
    from jpsi_engine.verdict.staging_outcome import (
        phase_of,
        what_failed,
        with_staging,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "batch_verdict": "Facts begun judge settles unverified",
            "exit_phases": (
                "ALSO ARGUMENTS CANCEL CLEANUP DIRECTORY ENVIRONMENT EXECUTABLE LAUNCH NODES "
                "NOT_EXECUTABLE_CODE NOT_FOUND_CODE POST_LAUNCH PRE_LAUNCH PROLOGUE RAN SETUP_CODE SHELL "
                "STAGE_IN STAGE_OUT STDERR STDIN STDOUT TIMEOUT"
            ),
            "job_identity": "Owner is_own is_refused owner_of",
            "marker_verdict": "ProcessEnd SIGNAL_BASE Stop conclude exited_at_all from_ns never_ran",
            "markers": "Marker parse scan",
            "staging_outcome": "phase_of what_failed with_staging",
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
    "Owner",
    "ProcessEnd",
    "Stop",
    "begun",
    "conclude",
    "exit_phases",
    "exited_at_all",
    "from_ns",
    "is_own",
    "is_refused",
    "judge",
    "markers",
    "never_ran",
    "owner_of",
    "parse",
    "phase_of",
    "scan",
    "settles",
    "unverified",
    "what_failed",
    "with_staging",
]
