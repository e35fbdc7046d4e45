"""Cancels, holds and releases jobs, and parses Flux's refusals.

None of the commands can check a job's name: `flux cancel` takes either ids, or `--user` and `--states`. The
engine therefore checks the names just before. If another job of the same user gets the id in between, the
command changes that job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Site, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import command
from ..native_ids import canonical_id

# `flux job urgency` takes one job; $0 is the urgency.
_URGENCY_SCRIPT = 'code=0; for id do flux job urgency "$id" "$0" || code=1; done; exit "$code"'
# flux-cancel: ERROR: f234: unknown job id; flux-job: 7290690207744: job is inactive
_REFUSED = re.compile(r"flux-(?:cancel: ERROR|job): (\S+): (.+)")
# Flux's messages about a job that has ended or that it does not know
_ALREADY_ENDED = ("job is inactive", "unknown job id")


@hookimpl
def cancel(native_ids: Sequence[str], site: Site) -> Command:
    """Return the cancel command: Flux sends TERM to all processes of a job, and KILL five seconds later."""
    return command(site, "flux", "cancel", *native_ids)


@hookimpl
def hold(native_ids: Sequence[str], site: Site) -> Command:
    """Return the command that keeps pending jobs from starting, by urgency 0."""
    return command(site, "/bin/sh", "-c", _URGENCY_SCRIPT, "hold", *native_ids)


@hookimpl
def release(native_ids: Sequence[str], site: Site) -> Command:
    """Return the command that lets held jobs start, by urgency 16."""
    return command(site, "/bin/sh", "-c", _URGENCY_SCRIPT, "default", *native_ids)


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not cancelled."""
    return refusals(result, native_ids, dict(_parse_refusals(result)), harmless=_ALREADY_ENDED)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not held or released."""
    return refusals(result, native_ids, dict(_parse_refusals(result)))


parse_release = parse_hold


def _parse_refusals(result: CommandResult) -> Iterator[tuple[str, str]]:
    """Yield the id of each refused job, from any spelling, with the reason."""
    for name, reason in _REFUSED.findall(result.stderr):
        try:
            yield canonical_id(name), reason
        except ValueError:
            continue
