from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Started

Start = Callable[..., "Started"]
ESCAPE = re.compile(rb"\x1b\[[0-9;]*m")


def lines(output: bytes) -> list[str]:
    return ESCAPE.sub(b"", output).decode().splitlines()


def test_each_state_is_shown_on_a_terminal(start_on_terminal: Start) -> None:
    code, output, _ = start_on_terminal("run", "--", "sh", "-c", "echo hello; exit 3").end()

    queued, active, hello, failed = lines(output)
    assert code == 3
    assert re.fullmatch(r"jpsi: QUEUED     native id \S+ on local, job [0-9a-f-]{36}", queued)
    assert active == "jpsi: ACTIVE"
    assert hello == "hello"
    assert re.fullmatch(r"jpsi: FAILED     the executable returned exit code 3 \(after \d+\.\d s\)", failed)
    assert b"\x1b[" in output


def test_states_are_on_lines_of_their_own(start_on_terminal: Start) -> None:
    code, output, _ = start_on_terminal("run", "--", "printf", "no line end").end()

    assert code == 0
    assert lines(output)[2] == "no line end"
    assert lines(output)[3].startswith("jpsi: COMPLETED  after ")


def test_a_file_gets_only_the_output(start_on_terminal: Start, tmp_path: Path) -> None:
    prefix = ("sh", "-c", 'exec "$@" >"$0"', str(tmp_path / "output"))

    code, output, _ = start_on_terminal("run", "--", "printf", "no line end", prefix=prefix).end()

    assert code == 0
    assert (tmp_path / "output").read_bytes() == b"no line end"
    assert [line.split()[1] for line in lines(output)] == ["QUEUED", "ACTIVE", "COMPLETED"]


def test_no_color_is_honoured(
    start_on_terminal: Start, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment["NO_COLOR"] = "1"

    _, output, _ = start_on_terminal("run", "--", "true").end()

    assert b"QUEUED" in output
    assert b"\x1b" not in output


def test_ctrl_c_cancels(start_on_terminal: Start) -> None:
    started = start_on_terminal("run", "--", "sh", "-c", "printf ready; exec sleep 60")
    started.wait_for(b"ready")
    started.type(b"\x03")

    code, output, _ = started.end()

    assert code == 130
    assert "jpsi: cancelling: press Ctrl-C again to exit without waiting for the end" in lines(output)
    assert lines(output)[-1].startswith("jpsi: CANCELED   the job was cancelled")
