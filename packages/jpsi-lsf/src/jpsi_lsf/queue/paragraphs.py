"""Splits the output of `bjobs -l` and `bhist -l` into one paragraph per job, and checks that it is complete.

`long_listing` uses it.

The output does not announce its end. But each paragraph ends with a known section: the scheduling parameters
in bjobs, and the summary in bhist. A line of dashes separates paragraphs, and an empty line follows the last
one. This was measured on volclava 2.2, whose formats are those of LSF since version 8. It is not known
whether LSF 10.1 prints the empty line; it is not needed if each queried job is in the output.

The checks miss these errors: output that was cut after a paragraph and then got an empty line; a history that
lacks a line, such as that of a signal; and a letter or digit that was changed into another one in text that
the output has only once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import attrs

from ..native_ids import ID_PATTERN

Part = TypeVar("Part")

# LSF wraps lines after 80 characters, even within words, and continues them after 21 blanks.
_FOLD = re.compile(r"\n {21}")
_SEPARATOR = re.compile(r"^-{78}\n", re.MULTILINE)
_HEAD = re.compile(rf"^Job <({ID_PATTERN})>(,.*)\n", re.MULTILINE)
_TIMESTAMP = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d(?: \d{4})?"
#: The time of an event within the text of another: the line break between them is missing.
EMBEDDED_EVENT = re.compile(rf"{_TIMESTAMP}: ")
#: An event: its time and its text.
EVENT = re.compile(rf"^({_TIMESTAMP}): (.*)$", re.MULTILINE)


@attrs.frozen(slots=True, kw_only=True)
class Form:
    """The form of the paragraphs of one command."""

    #: The section that each paragraph has once, after everything that is parsed.
    closing: re.Pattern[str]
    #: The end of the last paragraph.
    end: re.Pattern[str]
    #: The form of lines that are no events; None allows any line.
    other: re.Pattern[str] | None = None


#: `bjobs -l`: below the first line, only the state and the pending reasons are parsed.
BJOBS_FORM = Form(
    closing=re.compile(r"^ SCHEDULING PARAMETERS:\n", re.MULTILINE),
    end=re.compile(
        r"^ RESOURCE REQUIREMENT DETAILS:\n Combined: .*\n Effective: (?s:.*)\n\n\Z", re.MULTILINE
    ),
)
#: `bhist -l`: the state follows from the events, so that none may be missed. Other lines are indented, or are
#: the titles and figures of MEMORY USAGE, CPU USAGE and others, which LSF 10.1 prints at the end.
BHIST_FORM = Form(
    closing=re.compile(
        rf"^Summary of time in seconds spent in various states by  ?{_TIMESTAMP}\n"
        r"  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL *\n"
        r" +\d+ +\d+ +(?P<run_time>\d+) +\d+ +\d+ +\d+ +\d+ *(?:\n|\Z)",
        re.MULTILINE,
    ),
    end=re.compile(r"\d *\n\n\Z"),
    other=re.compile(r"(?! *[A-Za-z]{3} [A-Za-z]{3} [ 0-9]\d )(?!.*\d\d:\d\d:\d\d)(?: .*|[A-Z]{3}.*)?"),
)


@attrs.frozen(slots=True, kw_only=True)
class Paragraph:
    """The paragraph about one job."""

    #: The native id.
    name: str
    #: The rest of the first line after the id.
    head: str
    #: The lines below the first.
    body: str
    #: The match of the closing section.
    closing: re.Match[str]


class Listing(NamedTuple, Generic[Part]):
    """The jobs in the output."""

    #: The paragraphs, or what they say.
    parts: Sequence[Part]
    #: True if the end of the output has arrived, so that no other job can follow.
    is_ended: bool


def split_paragraphs(output: str, form: Form) -> Listing[Paragraph] | None:
    """Return the paragraphs of the output, skipping text before them; None if one is incomplete."""
    text = _FOLD.sub("", output)
    chunks = _SEPARATOR.split(text)
    # a site may print a line of dashes, and bjobs prints one first if it does not know a job
    while chunks and not _has_part(chunks[0], form):
        del chunks[0]
    paragraphs = [_parse_paragraph(chunk, form, is_first=index == 0) for index, chunk in enumerate(chunks)]
    complete = [paragraph for paragraph in paragraphs if paragraph is not None]
    if not complete or len(complete) != len(paragraphs):
        return None
    return Listing(complete, is_ended=form.end.search(chunks[-1]) is not None)


def _has_part(chunk: str, form: Form) -> bool:
    """Return True if a text contains a paragraph or a part of one."""
    return any(part.search(chunk) for part in (_HEAD, EVENT, form.closing)) or "\nJob <" in f"\n{chunk}"


def _parse_paragraph(chunk: str, form: Form, *, is_first: bool) -> Paragraph | None:
    heads, closings = list(_HEAD.finditer(chunk)), list(form.closing.finditer(chunk))
    if len(heads) != 1 or len(closings) != 1 or closings[0].start() < heads[0].end():
        return None
    preamble, body = chunk[: heads[0].start()], chunk[heads[0].end() :]
    is_separated = not EVENT.search(preamble) if is_first else preamble == "\n"
    # the event of the submission follows the first line
    if not is_separated or not EVENT.match(body) or not _has_known_lines(body, closings[0], form):
        return None
    return Paragraph(name=heads[0][1], head=heads[0][2], body=body, closing=closings[0])


def _has_known_lines(body: str, closing: re.Match[str], form: Form) -> bool:
    lines = body.replace(closing[0], "").split("\n")
    return form.other is None or all(EVENT.fullmatch(it) or form.other.fullmatch(it) for it in lines)
