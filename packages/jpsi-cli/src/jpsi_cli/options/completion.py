"""Completes jobs and executors in the shell, when the user presses the tab key."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem


def jobs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids, native ids and names of jobs and arrays with this beginning; live ones first."""
    return _complete_jobs(incomplete, ("native_id", "name", "array_native_id", "array_id", "id"))


def native_ids(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the native ids that begin with the word; those of live jobs come first."""
    return _complete_jobs(incomplete, ("native_id", "array_native_id"))


def _complete_jobs(incomplete: str, fields: Sequence[str]) -> list[CompletionItem]:
    import jpsi  # noqa: PLC0415  help is shown without waiting for the library
    from jpsi_engine import job_store  # noqa: PLC0415

    try:
        found = job_store.jobs()
    except jpsi.JpsiError:
        return []
    items: dict[str, CompletionItem] = {}
    for job in sorted(found, key=lambda job: job.status.final):
        description = f"{job.name or '-'}, {job.status.state} on {job.origin.name}"
        for word in (getattr(job, field) for field in fields):
            if word and word.startswith(incomplete):
                items.setdefault(word, CompletionItem(word, help=description))
    return list(items.values())


def executors(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of executors and targets that begin with the word."""
    import jpsi  # noqa: PLC0415  as above

    try:
        found = {it.name for it in jpsi.plugins(load=False) if it.kind == "executor"}
        found.update(jpsi.configuration().targets)
    except jpsi.JpsiError:
        return []
    return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete.lower())]
