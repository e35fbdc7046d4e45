"""Job documents in files and on standard input."""

from __future__ import annotations

import warnings

import jpsi

from . import messages


def read(file: str) -> jpsi.JobSpec:
    """The spec in a document; what it says and jpsi does not act on is shown as warnings.

    Raises:
        InvalidJobException: the file cannot be read, or what it says is wrong.
    """
    name, text = _read(file)
    return _spec(text, name)


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
            specs.append((place, _spec(line, place)))
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


def _spec(text: str, name: str) -> jpsi.JobSpec:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jpsi.DocumentWarning)
        spec: jpsi.JobSpec = jpsi.read_document(text, name)
    for doubt in caught:
        messages.warning(str(doubt.message))
    return spec
