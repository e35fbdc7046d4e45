"""The interpreter of a script is looked for as the system does it, and nothing is read that could block."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jpsi_cli.interpreters import find_missing_interpreter


@pytest.mark.parametrize(
    ("content", "missing"),
    [
        (b"#!/bin/sh\necho\n", None),
        (b"#! /bin/sh -e\n", None),
        (b"#!/bin/nosh -e\n", "/bin/nosh"),
        (b"#!/bin/nosh", "/bin/nosh"),
        (b"#!/bin/sh\r\necho\r\n", "/bin/sh\r"),
        (b"#!/usr/bin/env python3\r\n", "python3\r"),
        (b"#!/usr/bin/env nopython\n", None),
        # env splits that itself, also behind a carriage return
        (b"#!/usr/bin/env -S python3 -u\r\n", None),
        (b"#!interpreters/mine\n", None),
        (b"#!interpreters/others\n", "interpreters/others"),
        (b"#!\n", None),
        (b"#!/" + 5000 * b"x", None),
        (b"\x7fELF\xff\n", None),
        (b"", None),
    ],
)
def test_the_first_line_names_the_interpreter(tmp_path: Path, content: bytes, missing: str | None) -> None:
    (tmp_path / "interpreters").mkdir()
    (tmp_path / "interpreters/mine").touch()
    script = tmp_path / "script"
    script.write_bytes(content)

    assert find_missing_interpreter(script, tmp_path) == missing


def test_a_pipe_and_what_is_not_there_are_no_scripts(tmp_path: Path) -> None:
    """Opening a pipe would wait for a program that writes to it."""
    os.mkfifo(tmp_path / "pipe")

    for name in ("pipe", "nothing", "x/../y", "a\0b"):
        assert find_missing_interpreter(tmp_path / name, tmp_path) is None
