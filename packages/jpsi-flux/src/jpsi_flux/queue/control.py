"""Cancelling, holding and releasing jobs, and what Flux says to it.

None of the commands can be told what else a job must be: `flux cancel` takes ids, or `--user` and
`--states`, and not both. So the names are looked up just before; a job of the same user that gets the id
between the two is changed in place of the one that had it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Site, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import command
from ..native_ids import canonical_id

# `flux job urgency` takes one job; the urgency is in $0.
_EACH = 'code=0; for id do flux job urgency "$id" "$0" || code=1; done; exit "$code"'
# flux-cancel: ERROR: f234: unknown job id; flux-job: 7290690207744: job is inactive
_REFUSED = re.compile(r"flux-(?:cancel: ERROR|job): (\S+): (.+)")
# The job is over, or nobody knows it.
_OVER = ("job is inactive", "unknown job id")


@hookimpl
def cancel(native_ids: Sequence[str], site: Site) -> Command:
    """The command that ends jobs: TERM for all their processes, and KILL five seconds later."""
    return command(site, "flux", "cancel", *native_ids)


@hookimpl
def hold(native_ids: Sequence[str], site: Site) -> Command:
    """The command that keeps pending jobs from starting: their urgency becomes 0."""
    return command(site, "/bin/sh", "-c", _EACH, "hold", *native_ids)


@hookimpl
def release(native_ids: Sequence[str], site: Site) -> Command:
    """The command that lets held jobs start: their urgency becomes 16."""
    return command(site, "/bin/sh", "-c", _EACH, "default", *native_ids)


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not cancelled."""
    return refusals(result, native_ids, dict(_said(result)), over=_OVER)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not held or released."""
    return refusals(result, native_ids, dict(_said(result)))


parse_release = parse_hold


def _said(result: CommandResult) -> Iterator[tuple[str, str]]:
    """Each job that was complained of, in whatever spelling, and why."""
    for name, why in _REFUSED.findall(result.stderr):
        try:
            yield canonical_id(name), why
        except ValueError:
            continue
