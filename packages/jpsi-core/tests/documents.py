"""A small job document, and ways to change it and to see its problems."""

from __future__ import annotations

import textwrap
import warnings

import pytest

from jpsi.document.documents import read_document
from jpsi.model.errors import DocumentError, DocumentWarning
from jpsi.model.spec import JobSpec

#: A document without anything optional; tests change one thing in it.
DOCUMENT = """\
version: 1
resources:
  - type: slot
    label: task
    count: 4
    with:
      - type: core
        count: 2
tasks:
  - command: [simulate, --fast]
    slot: task
    count:
      per_slot: 1
attributes:
  system:
    duration: 3600
"""


def changed(old: str, new: str) -> str:
    """Return DOCUMENT with one change."""
    assert DOCUMENT.count(old) == 1
    return DOCUMENT.replace(old, new)


def system(text: str) -> str:
    """Return DOCUMENT with more lines in attributes.system, from line 17 on."""
    return DOCUMENT + textwrap.indent(text, "    ") + "\n"


def jpsi(text: str) -> str:
    """Return DOCUMENT with lines in attributes.system.jpsi, from line 18 on."""
    return system("jpsi:\n" + textwrap.indent(text, "  "))


def document_problems(text: str) -> list[str]:
    """Return the problems in the DocumentError of a document, without the name of the document."""
    with pytest.raises(DocumentError) as raised:
        read_document(text, "job.yaml")
    assert all(problem.startswith("job.yaml:") for problem in raised.value.problems)
    assert all(problem in str(raised.value) for problem in raised.value.problems)
    return [problem.removeprefix("job.yaml:") for problem in raised.value.problems]


def read_quietly(text: str) -> JobSpec:
    """Return the spec of a document with unknown keys."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DocumentWarning)
        return read_document(text, lenient=True)
