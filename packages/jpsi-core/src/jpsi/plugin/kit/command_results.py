"""Reads the results of batch systems' commands: native ids, tags, times, counts, and why a command failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import attrs

from jpsi.contract import CommandResult, Failure, FailureKind, hookimpl, parse_duration

_DIGITS = re.compile(r"[0-9]+")
# A tag, or other text that looks like the end of one.
_LAST = re.compile(r"[A-Za-z0-9-]+\Z")
# The beginning of every tag that the engine makes, and how much of it an altered tag still has.
_TAG_PREFIX = "jpsi-"
_MIN_MATCHES = 3
# ctime(3): Sat Nov 21 09:00:42 2026; not by strptime, whose months are those of the locale
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\Z")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PRINTED_LENGTH = 500
# Exit codes of a shell, or of env, if a program is not installed
_NOT_FOUND = frozenset({126, 127})


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen(slots=True)
class IdForm:
    r"""The form of one system's native ids, which keeps other text from being taken for one.

    >>> form = IdForm("ACME", r"[1-9][0-9]*(\.[0-9]+)?", largest=99999)
    >>> form.is_id("17.1"), form.is_id("017"), form.is_id("100000"), form.is_id("*")
    (True, False, False, False)
    """

    #: The system's name, as users know it.
    system: str
    #: A pattern for the whole id; if an id has several parts, the first is a number.
    pattern: re.Pattern[str] = attrs.field(converter=_compiled)
    #: The largest number of an id: many commands truncate larger ones to 32 bits, which are other ids.
    largest: int | None = attrs.field(default=None, kw_only=True)

    def is_id(self, text: str) -> bool:
        """Return True if the text is the id of one job."""
        matches = self.pattern.fullmatch(text) is not None
        return matches and (self.largest is None or _number(text) <= self.largest)

    def canonical(self, text: str) -> str:
        """Return the text, or raise ValueError if it is no id: for the hook `canonical_id`."""
        if not self.is_id(text):
            raise ValueError(f"{text!r} is no job id of {self.system}'s")
        return text


def _number(native_id: str) -> int:
    """Return the number that a native id begins with, smaller for an older job; 0 if it has none."""
    digits = _DIGITS.match(native_id)
    return int(digits[0]) if digits else 0


def require_one_id(found: Iterable[str], printed: str) -> str:
    """Return the id that a submit command printed: for the hook `parse_submit`.

    `found` are the texts in the output that look like an id, of which the same may occur several times;
    ValueError, which quotes the whole output, if there is none or there are several.
    """
    ids = sorted(set(found))
    if len(ids) != 1:
        what = f"several job ids ({', '.join(ids)})" if ids else "no job id"
        raise ValueError(f"{what} in the answer {printed.strip()[:_PRINTED_LENGTH]!r}")
    return ids[0]


@attrs.frozen(slots=True, kw_only=True)
class SubmitErrors:
    """The error messages of a submit command, and their meaning: `failure` is a hook `classify_failure`."""

    #: The command's name, with which messages begin.
    command: str
    #: Parts of its output with their meaning, tried in this order. Output that matches none is AMBIGUOUS.
    texts: Sequence[tuple[str, FailureKind]]
    #: Exit codes with which it refuses a job in words that are not in `texts`.
    own_codes: Collection[int] = ()
    #: Words one of which must be in the output for `own_codes` to count: a shell or ssh may have that code.
    own_words: Sequence[str] = ()
    #: A regular expression for parts of its output to leave out of messages.
    noise: str | None = None

    @hookimpl
    def failure(self, result: CommandResult) -> Failure:
        """Return the meaning of a failed submission, with the command's message."""
        complaint = result.complaint if self.noise is None else re.sub(self.noise, "", result.complaint)
        return Failure(self._kind(result), f"{self.command}: {complaint}")

    def _kind(self, result: CommandResult) -> FailureKind:
        output = result.stderr + result.stdout
        for text, kind in self.texts:
            if text in output:
                return kind
        if result.returncode in self.own_codes and any(words in output for words in self.own_words):
            return FailureKind.INVALID_JOB
        if result.returncode in _NOT_FOUND and "not found" in output:
            return FailureKind.PERMANENT
        return FailureKind.AMBIGUOUS


def ids_by_tag(texts: Iterable[tuple[str, str]], tags: Collection[str]) -> dict[str, str]:
    """Return the native ids of the jobs that carry these tags: for the hook `parse_find`.

    Each text, such as a job's comment, has the tag at its end, and comes with the native id of the job.
    If several jobs carry a tag, the oldest one counts: a job that was submitted from within another may have
    inherited its tag with the environment, and of a request that was sent twice the first is likely to run.

    >>> ids_by_tag([("my name jpsi-5-1", "18"), ("jpsi-5-1", "17"), ("jpsi-6-1", "19")], ["jpsi-5-1"])
    {'jpsi-5-1': '17'}
    """
    found = [(end, native_id) for text, native_id in texts if (end := _end(text)) and end in tags]
    return dict(sorted(found, key=lambda item: _number(item[1]), reverse=True))


def extract_tag(text: str) -> str:
    """Return the tag at the end of a job's text, such as its comment; empty if there is none.

    For `Observation.tag`. The text before the tag is the user's or the site's.

    >>> extract_tag("my name jpsi-5-1"), extract_tag("(null)")
    ('jpsi-5-1', '')
    """
    end = _end(text)
    return end if end.startswith(_TAG_PREFIX) else ""


def extract_intact_tag(text: str) -> str | None:
    """Return the tag at the end of a job's text, "" if there is none; None for a possibly corrupt tag.

    >>> [extract_intact_tag(it) for it in ("my%20name jpsi-5-1", "my own job", "jpsi-5~1", "j~si-5-1")]
    ['jpsi-5-1', '', None, None]
    """
    tag, last = extract_tag(text), text.rpartition(" ")[2]
    matches = len(_TAG_PREFIX) - _count_differences(last, _TAG_PREFIX)
    is_like_tag = len(last) >= len(_TAG_PREFIX) and matches >= _MIN_MATCHES
    # a corrupt byte is replaced, or arrives as a character that is not printable
    is_garbled = not last.isprintable() or "\N{REPLACEMENT CHARACTER}" in last
    return None if is_garbled or (is_like_tag and not tag) else tag


def _end(text: str) -> str:
    end = _LAST.search(text.rstrip())
    return end[0] if end else ""


def refusals(
    result: CommandResult,
    native_ids: Sequence[str],
    complaints: Mapping[str, str],
    *,
    harmless: Iterable[str] = (),
    changed: Collection[str] | None = None,
) -> dict[str, str]:
    """Return why jobs were not changed: for the hooks `parse_cancel`, `parse_hold` and `parse_release`.

    `complaints` has those of the command, by native id. If it failed and its complaints name no job, its
    error applies to all jobs. `harmless` has parts of complaints which mean that a job needs no change any
    more. `changed` has the jobs that the command reports as changed, and is None if it never reports them; a
    command that reports them and fails has failed for the others.
    """
    requested = frozenset(native_ids)
    found = {native_id: why for native_id, why in complaints.items() if native_id in requested}
    failed = result.returncode != 0 or result.timed_out
    rest = requested.difference(found, changed or ()) if failed and (changed is not None or not found) else ()
    # the complaint of the whole command may only mean that another job needs no change
    return {
        **{native_id: why for native_id, why in found.items() if not any(text in why for text in harmless)},
        **{native_id: result.complaint for native_id in native_ids if native_id in rest},
    }


def parse_time(text: str) -> datetime | None:
    """Return a time that a command printed in UTC: give it `TZ=UTC0` in its environment.

    The text is in the form of ISO 8601, in that of ctime(3), or in seconds since 1970. Any other text, such
    as a placeholder for a missing time, gives None.

    >>> parse_time("Sat Nov 21 09:00:42 2026") == parse_time("2026-11-21T09:00:42")
    True
    >>> parse_time("1795251642") == parse_time("2026-11-21T09:00:42")
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


def parse_count(text: str | None) -> int | None:
    """Return a number of digits; None if the field is missing or something else.

    >>> parse_count("12"), parse_count("UNLIMITED"), parse_count(None)
    (12, None, None)
    """
    return int(text) if text is not None and text.isdecimal() else None


def parse_limit(text: str | None, parse: Callable[[str], timedelta] = parse_duration) -> timedelta | None:
    """Return a time limit, as `parse` reads it; None if the field is missing or is no time."""
    try:
        return None if text is None else parse(text)
    except (OverflowError, ValueError):
        return None


def is_nearly(word: str, known: Iterable[str]) -> bool:
    """Return True if a word is one of these but for one character: such output is corrupt, and no answer.

    >>> is_nearly("Ex~ted", ["Exited"]), is_nearly("Exited", ["Exited"]), is_nearly("Sent", ["Done"])
    (True, False, False)
    """
    return any(len(word) == len(it) and _count_differences(word, it) == 1 for it in known)


def _count_differences(one: str, other: str) -> int:
    """Return the number of places where two texts differ, up to the end of the shorter."""
    return sum(a != b for a, b in zip(one, other, strict=False))
