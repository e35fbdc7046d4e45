"""Reports: plans as text, JSON and SVG, and the state of each entry of a run."""

from __future__ import annotations

from .plan_json import as_plain
from .plan_svg import render_svg
from .plan_text import plan_lines, plan_tree
from .run_report import ended_badly, entry_line, group_journals, refresh, run_records, why_not_completed

__all__ = [
    "as_plain",
    "ended_badly",
    "entry_line",
    "group_journals",
    "plan_lines",
    "plan_tree",
    "refresh",
    "render_svg",
    "run_records",
    "why_not_completed",
]
