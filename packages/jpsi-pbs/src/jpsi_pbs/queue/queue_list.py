"""Queries the version and the queues of PBS or Torque, and parses the output.

`JobExecutor.system` and `jpsi queues` use it; job monitoring does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Queue, hookimpl
from jpsi.plugin.kit import parse_count, parse_limit, read_amount

from ..sizes import UNITS

# The second command prints which queue is the default.
_SCRIPT = "qstat -Q -f && exec qstat -B -f"
# These variables make Torque's qstat leave out attributes.
_CLIENT_VARIABLES = ("PBS_QSTAT_*",)
# A long value continues in lines that begin with a tab.
_FOLD = re.compile(r"\n\t")
_HEAD = re.compile(r"^(Queue|Server): (\S+)[ \t\r]*$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^ +(\S+) = (.*?)[ \t\r]*$", re.MULTILINE)
# pbs_queue_attributes(7B): with these a queue takes jobs from lists of users, groups or hosts
_ACCESS_LISTS = ("acl_user_enable", "acl_group_enable", "acl_host_enable")
_COUNT = re.compile(r"(\w+):(\d+)")


@hookimpl
def version() -> Command:
    """Return the command that prints the version, without contacting the server."""
    return Command(["qstat", "--version"])


@hookimpl
def queues() -> Command:
    """Return the command that prints all attributes of the queues and of the server."""
    return Command(["/bin/sh", "-c", _SCRIPT], unset=_CLIENT_VARIABLES)


def parse_queue_listing(result: CommandResult, system: str) -> Sequence[Queue]:
    """Return the queues in the output; pbs_queue_attributes(7B).

    Args:
        result: the output of the command of `queues`.
        system: the prefix of the names of details.
    """
    objects = list(_parse_objects(result.checked().stdout))
    defaults = {it["default_queue"] for kind, _, it in objects if kind == "Server" and "default_queue" in it}
    return [
        _parse_queue(name, attributes, system, is_default=name in defaults)
        for kind, name, attributes in objects
        if kind == "Queue"
    ]


def _parse_objects(output: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the kind, the name and the attributes of each queue and server."""
    _, *parts = _HEAD.split(_FOLD.sub("", output))
    for kind, name, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield kind, name, dict(_ATTRIBUTE.findall(text))


def _parse_queue(name: str, attributes: Mapping[str, str], system: str, *, is_default: bool) -> Queue:
    enabled, started = (_parse_boolean(attributes.get(word)) for word in ("enabled", "started"))
    counts = dict(_COUNT.findall(attributes.get("state_count", "")))
    # users cannot submit to such a queue, and others send it their jobs
    is_routed = attributes.get("from_route_only") == "True"
    details = [it for it in attributes if it.startswith(("resources_", "max_", "acl_")) or it == "queue_type"]
    return Queue(
        name=name,
        native_state=f"{_describe_flag('enabled', enabled)}, {_describe_flag('started', started)}"
        + (", from_route_only" if is_routed else ""),
        is_open=enabled and not is_routed,
        is_started=started,
        is_default=is_default,
        max_walltime=parse_limit(attributes.get("resources_max.walltime")),
        default_walltime=parse_limit(attributes.get("resources_default.walltime")),
        max_nodes=parse_count(attributes.get("resources_max.nodect")),
        max_cores=parse_count(attributes.get("resources_max.ncpus")),
        max_memory=_parse_memory(attributes.get("resources_max.mem")),
        min_walltime=parse_limit(attributes.get("resources_min.walltime")),
        min_nodes=parse_count(attributes.get("resources_min.nodect")),
        min_cores=parse_count(attributes.get("resources_min.ncpus")),
        min_memory=_parse_memory(attributes.get("resources_min.mem")),
        is_restricted=any(attributes.get(it) == "True" for it in _ACCESS_LISTS),
        has_gpus=_has_gpus(attributes),
        pending=parse_count(counts.get("Queued")),
        running=parse_count(counts.get("Running")),
        details={f"{system}.{it}": attributes[it] for it in details if "assigned" not in it},
    )


def _parse_memory(text: str | None) -> int | None:
    try:
        return None if text is None else read_amount(text, UNITS)
    except ValueError:
        return None


def _has_gpus(attributes: Mapping[str, str]) -> bool | None:
    counts = [parse_count(attributes.get(f"resources_{it}.ngpus")) for it in ("max", "min", "default")]
    known = [it for it in counts if it is not None]
    return any(known) if known else None


def _parse_boolean(value: str | None) -> bool | None:
    return {"True": True, "False": False}.get(value or "")


def _describe_flag(name: str, value: bool | None) -> str:  # noqa: FBT001  the value of the flag
    return {True: name, False: f"not {name}", None: f"{name} or not"}[value]
