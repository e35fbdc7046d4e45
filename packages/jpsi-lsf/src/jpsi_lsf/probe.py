"""What a site's LSF offers, as it shows when it is asked for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Self

import attrs

from jpsi.plugin import Command, CommandResult, Site, SubmitException

from .commands import lsf
from .records import FIELDS, records

# The first two tell what bjobs understands, the third what queues do.
_SCRIPT = f"bjobs -V; bjobs -o '{FIELDS}' -json; exec bqueues -l"
# bjobs that does not know an option, or a field
_OLD = re.compile(
    r"^Usage: bjobs|in the format string is not a valid field|bjobs: (?:illegal|invalid)", re.MULTILINE
)
# Volclava 2.2 knows -json and not all the fields, and says so only if there is a job to tell of.
_LSF_10 = re.compile(r"\bLSF\b.* [1-9][0-9]\.[0-9]")
_QUEUE = re.compile(r"^QUEUE: ", re.MULTILINE)
_REQUEUE = re.compile(r"^REQUEUE_EXIT_VALUES: *(.*)$", re.MULTILINE)
_EVERY = range(1, 256)


@attrs.frozen(slots=True, kw_only=True)
class Offers:
    """What was found out about a site; the fields are None, or empty, before that."""

    #: Whether bjobs prints JSON with all that is to be known.
    json: bool | None = None
    #: Exit codes with which a queue puts a job back.
    requeue_exit_codes: frozenset[int] = attrs.field(default=frozenset(), converter=frozenset)

    @classmethod
    def of(cls, site: Site) -> Self:
        """What is known of a site."""
        known = {field.name for field in attrs.fields(cls)}
        return cls(**{name: value for name, value in site.offers.items() if name in known})


def probe() -> Command:
    """The command that tries bjobs, and shows the queues."""
    return attrs.evolve(lsf("bjobs"), argv=["/bin/sh", "-c", _SCRIPT])


def offers(result: CommandResult) -> dict[str, Any]:
    """The fields of `Offers` as plain values."""
    json = _json(result)
    if json is None or not _QUEUE.search(result.stdout):
        result.checked()
        msg = f"bjobs and bqueues gave no answer: {result.complaint}"
        raise SubmitException(msg, transient=True)
    codes = {code for text in _REQUEUE.findall(result.stdout) for code in _codes(text)}
    return {"json": json, "requeue_exit_codes": sorted(codes)}


def _json(result: CommandResult) -> bool | None:
    """Whether bjobs tells all fields as JSON; None if it has not answered."""
    if _OLD.search(result.stderr):
        return False
    found = records(result.stdout)
    if found is None:
        return None
    return any("STAT" in job for job in found) or bool(_LSF_10.search(result.stdout + result.stderr))


def _codes(text: str) -> Iterator[int]:
    """The codes in what a queue says (lsb.queues of LSF 10.1, REQUEUE_EXIT_VALUES).

    >>> list(_codes("3 99 EXCLUDE(125)")), len(list(_codes("all ~1 ~2")))
    ([3, 99, 125], 253)
    """
    without = {int(number) for number in re.findall(r"~ *(\d+)", text)}
    if re.search(r"\ball\b", text):
        yield from (code for code in _EVERY if code not in without)
        return
    yield from (code for code in map(int, re.findall(r"\d+", text)) if code not in without)
