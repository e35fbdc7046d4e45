"""What a site's Slurm offers, as its configuration tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Self

import attrs

from jpsi.plugin import Command, CommandResult, Site

from .commands import slurm

_SETTING = re.compile(r"(\S+)\s*= (.*?)\s*\Z")
_NO_ACCOUNTING = frozenset({"accounting_storage/none", "(null)"})


@attrs.frozen(slots=True, kw_only=True)
class Offers:
    """What was found out about a site; the fields are None, or empty, before that."""

    #: Year and month, such as (22, 5).
    version: tuple[int, ...] = attrs.field(default=(), converter=tuple)
    #: The cluster's name.
    cluster: str | None = None
    #: Whether slurmdbd keeps accounts.
    accounting: bool | None = None
    #: How many seconds a finished job is remembered.
    min_job_age: int | None = None
    #: Exit codes with which a job is put back.
    requeue_exit_codes: frozenset[int] = attrs.field(default=frozenset(), converter=frozenset)

    @classmethod
    def of(cls, site: Site) -> Self:
        """What is known of a site."""
        known = {field.name for field in attrs.fields(cls)}
        return cls(**{name: value for name, value in site.offers.items() if name in known})


def probe(site: Site) -> Command:
    """The command that prints the configuration."""
    return slurm(site, "scontrol", "show", "config")


def offers(result: CommandResult) -> dict[str, Any]:
    """The fields of `Offers` as plain values, from `scontrol show config` (slurm.conf(5))."""
    settings = dict(_settings(result.checked().stdout))
    storage = settings.get("AccountingStorageType")
    codes = (settings.get("RequeueExit", ""), settings.get("RequeueExitHold", ""))
    return {
        "version": _numbers(settings.get("SLURM_VERSION", ""))[:2],
        "cluster": settings.get("ClusterName"),
        "accounting": None if storage is None else storage not in _NO_ACCOUNTING,
        "min_job_age": next(iter(_numbers(settings.get("MinJobAge", ""))), None),
        "requeue_exit_codes": sorted({code for text in codes for code in _codes(text)}),
    }


def _settings(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        match = _SETTING.match(line)
        if match is not None:
            yield match[1], match[2]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", text)]


def _codes(text: str) -> Iterator[int]:
    """The codes in a list such as `1-3,100`."""
    for first, last in re.findall(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", text):
        yield from range(int(first), int(last or first) + 1)
