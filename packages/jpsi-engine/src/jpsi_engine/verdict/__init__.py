"""Verdicts: pure functions that turn the evidence about a job into its status.

The order of the evidence does not matter.
"""

from jpsi_engine.verdict import exit_phases, markers
from jpsi_engine.verdict.batch_verdict import Facts, active_status, is_conclusive, judge, unverified_status
from jpsi_engine.verdict.exit_phases import *  # noqa: F403  the vocabulary of markers, as a whole
from jpsi_engine.verdict.job_identity import Owner, is_own, is_refused, owner_of
from jpsi_engine.verdict.marker_verdict import (
    SIGNAL_BASE,
    ProcessEnd,
    Stop,
    add_staging_outcome,
    datetime_from_ns,
    failed_staging_phase,
    has_exit_marker,
    judge_process,
    never_ran_status,
    parse_exit_phase,
)
from jpsi_engine.verdict.markers import Marker, parse, scan
