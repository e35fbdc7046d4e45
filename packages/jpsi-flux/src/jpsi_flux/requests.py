"""Cancelling, holding and releasing jobs, and what Flux says to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jpsi.plugin import Command, CommandResult, Site

from .commands import flux, instance
from .ids import askable, decimal, is_id

# `flux job urgency` takes one job; the urgency is in $0.
_EACH = 'code=0; for id do flux job urgency "$id" "$0" || code=1; done; exit "$code"'
# flux-cancel: ERROR: f234: unknown job id; flux-job: 7290690207744: job is inactive
_REFUSED = re.compile(r"flux-(?:cancel: ERROR|job): (\S+): (.+)")
# The job is over, or nobody knows it.
_OVER = frozenset({"job is inactive", "unknown job id"})


def cancel(native_ids: Sequence[str], site: Site) -> Command:
    """The command that ends jobs: TERM for all their processes, and KILL five seconds later."""
    return flux(site, "cancel", *(askable(native_ids) or native_ids))


def hold(native_ids: Sequence[str], site: Site) -> Command:
    """The command that keeps pending jobs from starting: their urgency becomes 0."""
    return instance(site, "/bin/sh", "-c", _EACH, "hold", *askable(native_ids))


def release(native_ids: Sequence[str], site: Site) -> Command:
    """The command that lets held jobs start: their urgency becomes 16."""
    return instance(site, "/bin/sh", "-c", _EACH, "default", *askable(native_ids))


def not_cancelled(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not cancelled; one that is over, or was never there, is not among them."""
    return {native_id: why for native_id, why in _failed(result, native_ids) if why not in _OVER}


def not_changed(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not held or released."""
    return dict(_failed(result, native_ids))


def _failed(result: CommandResult, native_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    succeeded = result.returncode == 0 and not result.timed_out
    refused = dict(_refused(result.stderr))
    for native_id in native_ids:
        if not is_id(native_id):
            yield native_id, f"{native_id!r} is no job id of Flux's"
        elif native_id in refused:
            yield native_id, refused[native_id]
        elif not succeeded and not refused:
            yield native_id, result.complaint


def _refused(said: str) -> Iterator[tuple[str, str]]:
    """Each job that was complained of, in whatever spelling, and why."""
    for name, why in _REFUSED.findall(said):
        try:
            yield decimal(name), why
        except ValueError:
            continue
