"""`jpsi run`: from the command line to the job, and from what can go wrong to an exit code."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import jpsi

from . import codes, display, messages
from .foreground import Foreground
from .options import Given, spec_of


def run(  # noqa: PLR0913  all that is not a field of the job, each by its name
    command: Sequence[str],
    given: Given,
    *,
    executor: str | None,
    file: str | None,
    is_expanding: bool,
    as_json: bool,
) -> int:
    """Run one job and return the exit code; every failure that jpsi knows is told in a sentence."""
    messages.show_library_warnings()
    try:
        document = None if file is None else _read(file)
        job = jpsi.Job(spec_of(document, command, given, is_expanding=is_expanding))
        with jpsi.JobExecutor(executor) as opened:
            return Foreground(job, display.chosen(as_json=as_json)).run(opened)
    except jpsi.InvalidJobException as e:
        messages.error(e.problems[0] if len(e.problems) == 1 else str(e))
        return codes.USAGE
    except jpsi.JpsiError as e:
        messages.error(str(e))
        return codes.JPSI


def _read(file: str) -> jpsi.JobSpec:
    """The spec in a document; what it says and jpsi does not act on is shown as warnings."""
    name = "standard input" if file == "-" else file
    try:
        # The descriptor itself, since sys.stdin is None where that is closed.
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            text = opened.read().decode()
    except OSError as e:
        msg = f"{name} cannot be read: {e.strerror}"
        raise jpsi.InvalidJobException(msg, e) from e
    except UnicodeDecodeError as e:
        msg = f"{name} is not text in UTF-8: byte {e.start + 1} is {e.object[e.start]:#04x}"
        raise jpsi.InvalidJobException(msg, e) from e
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jpsi.DocumentWarning)
        spec: jpsi.JobSpec = jpsi.read_document(text, name)
    for doubt in caught:
        messages.warning(str(doubt.message))
    return spec
