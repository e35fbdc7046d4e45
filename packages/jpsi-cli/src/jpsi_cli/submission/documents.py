"""Job documents in files and on standard input."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable

import jpsi

from .. import messages


def read(file: str) -> jpsi.JobSpec:
    """The spec in a document; what it says and jpsi does not act on is shown as warnings.

    Raises:
        InvalidJobException: the file cannot be read, or what it says is wrong.
    """
    name, text = _read(file)
    try:
        return _spec(text, name)
    except jpsi.InvalidJobException:
        if not _has_lines(text):
            raise
        msg = f"{name} has a document on each line: jpsi submit and jpsi validate take it as --many {file}"
        raise jpsi.InvalidJobException(msg) from None


def read_each(files: Iterable[str]) -> list[tuple[str, jpsi.JobSpec]]:
    """What messages call these files, and the specs in them.

    Raises:
        InvalidJobException: as `read`; all that is wrong with any of them is named.
    """
    specs, mistakes = [], list[jpsi.InvalidJobException]()
    for file in files:
        try:
            specs.append((name_of(file), read(file)))
        except jpsi.InvalidJobException as e:
            mistakes.append(e)
    if len(mistakes) > 1:
        what = f"what is in {len(mistakes)} files"
        raise jpsi.InvalidJobException.of(what, [problem for it in mistakes for problem in it.problems])
    if mistakes:
        raise mistakes[0]
    return specs


def read_many(file: str) -> list[tuple[str, jpsi.JobSpec]]:
    """The places and specs in a file that has a document, in JSON, on each line; empty lines mean nothing.

    Raises:
        InvalidJobException: the file cannot be read, or what it says is wrong; all that is wrong is named.
    """
    name, text = _read(file)
    specs, problems = [], list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        try:
            specs.append((place, _spec_in_line(line, place)))
        except jpsi.InvalidJobException as e:
            problems += e.problems
    if problems:
        raise jpsi.InvalidJobException.of(name, problems)
    if not specs:
        msg = f"{name} has no job in it"
        raise jpsi.InvalidJobException(msg)
    return specs


def name_of(file: str) -> str:
    """What messages call a file."""
    return "standard input" if file == "-" else file


def _read(file: str) -> tuple[str, str]:
    """What messages call a file, and what is in it."""
    name = name_of(file)
    try:
        # The descriptor itself, since sys.stdin is None where that is closed.
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            return name, opened.read().decode()
    except OSError as e:
        msg = f"{name} cannot be read: {e.strerror}"
        raise jpsi.InvalidJobException(msg, e) from e
    except UnicodeDecodeError as e:
        msg = f"{name} is not text in UTF-8: byte {e.start + 1} is {e.object[e.start]:#04x}"
        raise jpsi.InvalidJobException(msg, e) from e


def _has_lines(text: str) -> bool:
    """Whether a text looks like one with a document, in JSON, on each of several lines."""
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    return len(lines) > 1 and all(line[0] == "{" and line[-1] == "}" for line in lines)


def _spec_in_line(text: str, place: str) -> jpsi.JobSpec:
    try:
        json.loads(text)
    except json.JSONDecodeError as e:
        msg = f"{place}: is not a document in JSON: {e.msg}, at character {e.colno}"
        raise jpsi.InvalidJobException(msg) from e
    return _spec(text, place, is_line=True)


def _spec(text: str, name: str, *, is_line: bool = False) -> jpsi.JobSpec:
    def told(sentence: str) -> str:
        # the line within one line tells nothing
        return sentence.replace(f"{name}:1: ", f"{name}: ") if is_line else sentence

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jpsi.DocumentWarning)
        try:
            spec: jpsi.JobSpec = jpsi.read_document(text, name)
        except jpsi.InvalidJobException as e:
            if not is_line:
                raise
            raise jpsi.InvalidJobException.of(name, [told(it) for it in e.problems]) from e
    for doubt in caught:
        messages.warning(told(str(doubt.message)))
    return spec
