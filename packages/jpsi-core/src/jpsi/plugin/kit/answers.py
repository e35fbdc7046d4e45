"""What the commands of most batch systems answer, in forms that several of them have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from jpsi.contract import CommandResult
from jpsi.plugin.kit.native_ids import number

# A tag, and whatever else looks like the end of one.
_LAST = re.compile(r"[A-Za-z0-9-]+\Z")
# As the engine makes them.
_TAG_BEGINNING = "jpsi-"
# ctime(3): Sat Nov 21 09:00:42 2026; not by strptime, whose months are those of the locale
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\Z")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def tagged(texts: Iterable[tuple[str, str]], tags: Collection[str]) -> dict[str, str]:
    """The native ids of the jobs that carry these tags: for the hook `parse_find`.

    Where several jobs carry one, the oldest is it: a job that another has submitted may have got the tag with
    its environment, and of a request that was sent twice the first is likely to run.

    >>> tagged([("my name jpsi-5-1", "18"), ("jpsi-5-1", "17"), ("jpsi-6-1", "19")], ["jpsi-5-1"])
    {'jpsi-5-1': '17'}

    Args:
        texts: what carries a job's tag at its end, such as its comment, and the native id.
        tags: those that are looked for.
    """
    ends = ((_LAST.search(text.rstrip()), native_id) for text, native_id in texts)
    found = [(end[0], native_id) for end, native_id in ends if end is not None and end[0] in tags]
    return dict(sorted(found, key=lambda item: number(item[1]), reverse=True))


def carried_tag(text: str) -> str:
    """The tag at the end of a text that a job carries, such as its comment; empty if there is none.

    For `Observation.tag`. Whatever stands before it is the user's or the site's.

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
    """Why which jobs were not changed: for the hooks `parse_cancel`, `parse_hold` and `parse_release`.

    Of a command that failed and complained of no job, it holds for all of them.

    Args:
        result: how the command ended.
        native_ids: the jobs that it was to change.
        said: what it complained of, by native id.
        over: what it says, as part of a complaint, of a job that needs no change any more.
        done: the jobs that it says it has changed; None for a command that does not mention these. One that
            mentions them has failed for the rest.
    """
    asked = frozenset(native_ids)
    found = {native_id: why for native_id, why in said.items() if native_id in asked}
    failed = result.returncode != 0 or result.timed_out
    rest = asked.difference(found, done or ()) if failed and (done is not None or not found) else ()
    # what the whole command complained of may be that another job needs no change
    return {
        **{native_id: why for native_id, why in found.items() if not any(text in why for text in over)},
        **{native_id: result.complaint for native_id in native_ids if native_id in rest},
    }


def moment(text: str) -> datetime | None:
    """A time that a command printed, of the zone UTC: give it `TZ=UTC0` in its environment.

    It is in the form of ISO 8601, in that of ctime(3), or in seconds since 1970; None for anything else, such
    as what stands where there is no time.

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
