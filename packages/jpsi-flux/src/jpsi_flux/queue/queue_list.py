"""Queries Flux's version and queues, and parses the output.

`JobExecutor.system` and `jpsi queues` use it; job monitoring does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from jpsi.plugin import Command, CommandResult, Queue, Site, hookimpl
from jpsi.plugin.kit import parse_count, parse_limit

from ..commands import command

# flux-queue(1), OUTPUT FORMAT; the name of the default queue ends with a star
_FIELDS = (
    *("{queuem}", "{submission}", "{scheduling}", "{defaults.timelimit}", "{limits.timelimit}"),
    "{limits.range.nnodes}",
)
_SEPARATOR = "|"
_DEFAULT = "*"
_UNLIMITED = "inf"


@hookimpl
def version(site: Site) -> Command:
    """Return the command that prints Flux's version, without contacting the instance."""
    return command(site, "flux", "--version")


@hookimpl
def queues(site: Site) -> Command:
    """Return the command that prints one line per queue."""
    return command(site, "flux", "queue", "list", "-n", "-o", _SEPARATOR.join(_FIELDS))


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """Return the queues; an instance without queues is one queue without a name."""
    rows = (line.split(_SEPARATOR) for line in result.checked().stdout.splitlines())
    return [_parse_queue(row) for row in rows if len(row) == len(_FIELDS)]


def _parse_queue(row: Sequence[str]) -> Queue:
    name, submission, scheduling, default_limit, maximum_limit, nodes = row
    return Queue(
        name=name.removesuffix(_DEFAULT),
        native_state=f"{submission}, {scheduling}",
        is_open=submission == "enabled",
        is_started=scheduling == "started",
        is_default=not name or name.endswith(_DEFAULT),
        max_walltime=parse_limit(maximum_limit, _parse_seconds),
        default_walltime=parse_limit(default_limit, _parse_seconds),
        max_nodes=parse_count(nodes.partition("-")[2]),
    )


def _parse_seconds(text: str) -> timedelta:
    return timedelta(0) if text == _UNLIMITED else timedelta(seconds=float(text))
