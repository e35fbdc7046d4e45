"""The one form that every call of an LSF command has: its environment."""

from __future__ import annotations

from jpsi.plugin import Command

# lsf.conf of LSF 10.1 and its "Environment variable reference": they choose columns or hide reasons.
_MISLEADING = ("LSB_BJOBS_*", "LSB_BHIST_*", "LSB_BQUEUES_*", "LSB_DISPLAY_YEAR", "LSB_SUPPRESS_*", "BJOBS_*")
# LSF's messages are translated, and times are those of the zone of whoever asks.
_PLAIN = {"LC_ALL": "C", "TZ": "UTC0"}


def lsf(program: str, *arguments: str) -> Command:
    """The command that asks LSF something, or tells it something about jobs that it has."""
    return Command([program, *arguments], unset=_MISLEADING, environment=_PLAIN)
