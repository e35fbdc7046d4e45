"""Reads the output of batch systems' commands, in forms that several systems share."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from jpsi.contract import CommandResult
from jpsi.plugin.kit.native_ids import number

# A tag, or other text that looks like the end of one.
_LAST = re.compile(r"[A-Za-z0-9-]+\Z")
# The beginning of every tag that the engine makes.
_TAG_BEGINNING = "jpsi-"
# ctime(3): Sat Nov 21 09:00:42 2026; not by strptime, whose months are those of the locale
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\Z")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def tagged(texts: Iterable[tuple[str, str]], tags: Collection[str]) -> dict[str, str]:
    """Return the native ids of the jobs that carry these tags: for the hook `parse_find`.

    If several jobs carry a tag, the oldest one counts: a job that was submitted from within another may have
    inherited its tag with the environment, and of a request that was sent twice the first is likely to run.

    >>> tagged([("my name jpsi-5-1", "18"), ("jpsi-5-1", "17"), ("jpsi-6-1", "19")], ["jpsi-5-1"])
    {'jpsi-5-1': '17'}

    Args:
        texts: pairs of a text with a job's tag at its end, such as its comment, and the native id.
        tags: the tags to look for.
    """
    ends = ((_LAST.search(text.rstrip()), native_id) for text, native_id in texts)
    found = [(end[0], native_id) for end, native_id in ends if end is not None and end[0] in tags]
    return dict(sorted(found, key=lambda item: number(item[1]), reverse=True))


def carried_tag(text: str) -> str:
    """Return the tag at the end of a job's text, such as its comment; empty if there is none.

    For `Observation.tag`. The text before the tag is the user's or the site's.

    >>> carried_tag("my name jpsi-5-1"), carried_tag("(null)")
    ('jpsi-5-1', '')
    """
    end = _LAST.search(text.rstrip())
    return end[0] if end is not None and end[0].startswith(_TAG_BEGINNING) else ""


def refusals(
    result: CommandResult,
    native_ids: Sequence[str],
    said: Mapping[str, str],
    *,
    over: Iterable[str] = (),
    done: Collection[str] | None = None,
) -> dict[str, str]:
    """Return why jobs were not changed: for the hooks `parse_cancel`, `parse_hold` and `parse_release`.

    If a command failed and its complaints name no job, its error applies to all jobs.

    Args:
        result: the result of the command.
        native_ids: the jobs that it should change.
        said: its complaints, by native id.
        over: parts of complaints which mean that a job needs no change any more.
        done: the jobs that it reports as changed; None for a command that does not report these. If a command
            that reports them fails, it failed for the remaining jobs.
    """
    asked = frozenset(native_ids)
    found = {native_id: why for native_id, why in said.items() if native_id in asked}
    failed = result.returncode != 0 or result.timed_out
    rest = asked.difference(found, done or ()) if failed and (done is not None or not found) else ()
    # the complaint of the whole command may only mean that another job needs no change
    return {
        **{native_id: why for native_id, why in found.items() if not any(text in why for text in over)},
        **{native_id: result.complaint for native_id in native_ids if native_id in rest},
    }


def moment(text: str) -> datetime | None:
    """Return a time that a command printed in UTC: give it `TZ=UTC0` in its environment.

    The text is in the form of ISO 8601, in that of ctime(3), or in seconds since 1970. Any other text, such
    as a placeholder for a missing time, gives None.

    >>> moment("Sat Nov 21 09:00:42 2026") == moment("2026-11-21T09:00:42") == moment("1795251642")
    True
    """
    try:
        if text.isdecimal():
            return datetime.fromtimestamp(int(text), UTC)
        if match := _CTIME.match(text):
            day, hour, minute, second, year = (int(match[group]) for group in range(2, 7))
            return datetime(year, _MONTHS.index(match[1]) + 1, day, hour, minute, second, tzinfo=UTC)
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except (OverflowError, OSError, ValueError):
        return None
