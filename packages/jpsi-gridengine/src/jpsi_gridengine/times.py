"""The times that Grid Engine's commands print."""

from __future__ import annotations

from datetime import UTC, datetime

# qstat -xml, and qacct of 8.1.9
_FORMS = ("%Y-%m-%dT%H:%M:%S", "%a %b %d %H:%M:%S %Y")


def time(text: str) -> datetime | None:
    """A time of day as printed with TZ=UTC0; None for what stands where there is none, such as `-/-`."""
    for form in _FORMS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None
