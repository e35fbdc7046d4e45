"""The walltime of a job, its time limit, which the specification calls its duration.

It is the spec's `attributes.duration`, else the `default_duration` of the configuration.
"""

from __future__ import annotations

import re
from datetime import timedelta

from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.contract.spec_values import units
from jpsi.model import JobSpec

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_SECONDS = re.compile(rf"(?P<seconds>{_NUMBER})")
# As Slurm and PBS write it: [[days-]hours:]minutes:seconds; after hours, minutes are under 60.
_CLOCK = re.compile(
    r"(?:(?:(?P<days>[0-9]{1,6})-)?(?P<hours>[0-9]{1,9}):(?=0*[0-5]?[0-9]:))?"
    r"(?P<minutes>[0-9]{1,9}):(?P<seconds>[0-5]?[0-9])"
)
_WORDS = re.compile(
    rf"(?=.)(?:(?P<days>{_NUMBER})d)?(?:(?P<hours>{_NUMBER})h)?(?:(?P<minutes>{_NUMBER})m)?"
    rf"(?:(?P<seconds>{_NUMBER})s)?",
    re.IGNORECASE,
)


def walltime(spec: JobSpec, config: ExecutorConfig, unit: timedelta) -> int | None:
    """Return a job's walltime in whole units, rounded up; None is no limit.

    >>> walltime(JobSpec(), BatchConfig(default_duration=timedelta(seconds=61)), timedelta(minutes=1))
    2
    """
    limit = walltime_limit(spec, config)
    return units(limit, unit) if limit else None


def walltime_limit(spec: JobSpec, config: ExecutorConfig) -> timedelta | None:
    """Return a job's walltime: the spec's duration, else the configured default; None is no limit."""
    requested = spec.attributes.duration
    return (default_walltime(config) if requested is None else requested) or None


def default_walltime(config: ExecutorConfig) -> timedelta | None:
    """Return the walltime of jobs without a duration; None if the executor has no such setting."""
    return config.default_duration if isinstance(config, BatchConfig) else None


def parse_duration(text: str) -> timedelta:
    """Parse a duration or walltime as people write it: seconds, a clock or words; 0 means no limit.

    >>> parse_duration("90") == parse_duration("1:30") == parse_duration("1m30s") == timedelta(seconds=90)
    True
    >>> parse_duration("1-12:00:00") == parse_duration("1.5d") == timedelta(hours=36)
    True
    """
    match = _SECONDS.fullmatch(text) or _CLOCK.fullmatch(text) or _WORDS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time such as 90 (seconds), 10m, 2h30m or 1:30:00")
    try:
        return timedelta(**{unit: float(number) for unit, number in match.groupdict(default="0").items()})
    except OverflowError:
        raise ValueError(f"{text!r} is too long a time; 0 means no limit") from None
