"""Jobs as `bjobs -l` and `bhist -l` print them, a paragraph each, and whether an answer is whole.

These texts announce no end. Each paragraph has a last section, though: the scheduling parameters of bjobs,
and the summary of bhist. Between two paragraphs stands a line of dashes, and behind the last one an empty
line. That was measured on volclava 2.2, whose form of both is that of LSF since its version 8. Of LSF 10.1
it is not known whether the empty line is there; it is not needed where each job that was asked about is
told of.

What remains possible: an answer that was cut just behind a paragraph, to which an empty line was added; a
history that lacks a line, such as that of a signal; and a letter or digit that became another letter or
digit, where nothing else tells the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from ..native_ids import ID_PATTERN

# Lines are cut after 80 characters, wherever that is, and go on behind 21 blanks.
_FOLD = re.compile(r"\n {21}")
_BETWEEN = re.compile(r"^-{78}\n", re.MULTILINE)
_HEAD = re.compile(rf"^Job <({ID_PATTERN})>(,.*)\n", re.MULTILINE)
_MOMENT = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d(?: \d{4})?"
#: When an event was, inside of another: the end of the line between them is missing.
ANOTHER = re.compile(rf"{_MOMENT}: ")
#: An event: when it was, and what.
EVENT = re.compile(rf"^({_MOMENT}): (.*)$", re.MULTILINE)


@attrs.frozen(slots=True, kw_only=True)
class Form:
    """The paragraphs of one command."""

    #: What each paragraph has once, behind everything that is read.
    closing: re.Pattern[str]
    #: How the last one ends.
    end: re.Pattern[str]
    #: What a line that is none of an event's may be; None for anything.
    other: re.Pattern[str] | None = None


#: `bjobs -l`: nothing but the state and why it is pending is read below the first line.
OF_BJOBS = Form(
    closing=re.compile(r"^ SCHEDULING PARAMETERS:\n", re.MULTILINE),
    end=re.compile(
        r"^ RESOURCE REQUIREMENT DETAILS:\n Combined: .*\n Effective: (?s:.*)\n\n\Z", re.MULTILINE
    ),
)
#: `bhist -l`: the state comes from the events, so that none may be missed. Other lines are indented, or the
#: titles and figures of MEMORY USAGE, CPU USAGE and others, which LSF 10.1 prints at the end.
OF_BHIST = Form(
    closing=re.compile(
        rf"^Summary of time in seconds spent in various states by  ?{_MOMENT}\n"
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
    #: What stands behind it in the first line.
    head: str
    #: What stands below the first line.
    body: str
    #: What the closing section says.
    closing: re.Match[str]


@attrs.frozen(slots=True, kw_only=True)
class Paragraphs:
    """An answer."""

    found: tuple[Paragraph, ...]
    #: Whether the end of the whole answer is there, behind which no other job is told of.
    is_ended: bool


def paragraphs(output: str, form: Form) -> Paragraphs | None:
    """The paragraphs of an answer, whatever a site prints before it; None if one of them is not whole."""
    text = _FOLD.sub("", output)
    chunks = _BETWEEN.split(text)
    # a line of dashes may be a site's, and is the first line where bjobs names a job that it does not know
    while chunks and not _has_any(chunks[0], form):
        del chunks[0]
    found = [_paragraph(chunk, form, is_first=place == 0) for place, chunk in enumerate(chunks)]
    whole = [it for it in found if it is not None]
    if not whole or len(whole) != len(found):
        return None
    return Paragraphs(found=tuple(whole), is_ended=form.end.search(chunks[-1]) is not None)


def _has_any(chunk: str, form: Form) -> bool:
    """Return True if a text has a paragraph or a part of one."""
    return any(part.search(chunk) for part in (_HEAD, EVENT, form.closing)) or "\nJob <" in f"\n{chunk}"


def _paragraph(chunk: str, form: Form, *, is_first: bool) -> Paragraph | None:
    heads, closings = list(_HEAD.finditer(chunk)), list(form.closing.finditer(chunk))
    if len(heads) != 1 or len(closings) != 1 or closings[0].start() < heads[0].end():
        return None
    before, body = chunk[: heads[0].start()], chunk[heads[0].end() :]
    is_told = not EVENT.search(before) if is_first else before == "\n"
    # the first line is followed by when the job was submitted
    if not is_told or not EVENT.match(body) or any(_unclear(body, closings[0], form)):
        return None
    return Paragraph(name=heads[0][1], head=heads[0][2], body=body, closing=closings[0])


def _unclear(body: str, closing: re.Match[str], form: Form) -> Iterator[str]:
    """The lines that are none of the form's."""
    if form.other is None:
        return
    for line in body.replace(closing[0], "").split("\n"):
        if not EVENT.fullmatch(line) and not form.other.fullmatch(line):
            yield line
