"""Builds the command lines of LSF with a clean environment.

Without that, environment variables of the user would change the output that jpsi parses.
"""

from __future__ import annotations

from jpsi.plugin import Command

# lsf.conf of LSF 10.1 and its "Environment variable reference": they select columns or hide reasons.
_CLIENT_VARIABLES = (
    "LSB_BJOBS_*",
    "LSB_BHIST_*",
    "LSB_BQUEUES_*",
    "LSB_DISPLAY_YEAR",
    "LSB_SUPPRESS_*",
    "BJOBS_*",
)
# LSF translates its messages, and prints times in the time zone of the command's environment.
_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC0"}


def lsf_command(program: str, *arguments: str) -> Command:
    """Return the command that queries LSF or changes existing jobs."""
    return Command([program, *arguments], unset=_CLIENT_VARIABLES, environment=_ENVIRONMENT)
