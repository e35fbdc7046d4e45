"""Reports: plans as text, JSON and SVG, and the state of each entry of a run."""

from __future__ import annotations

from .plan_svg import render_svg
from .plan_text import plan_to_dict, render_plan, render_tree
from .run_report import (
    explain_end,
    explain_failure,
    explain_failures,
    group_journals,
    is_from_before,
    refresh_states,
    render_entry,
    run_records,
)
