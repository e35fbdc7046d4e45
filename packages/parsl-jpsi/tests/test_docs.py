"""The guide's page about Parsl, followed as written."""

from __future__ import annotations

import sys
from pathlib import Path

from jpsi.plugin import line
from pages import Reader

PAGE = Path(__file__).parents[3] / "docs/guide/parsl.md"


def test_the_page_about_parsl_can_be_followed(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for name in ("interchange.py", "process_worker_pool.py"):
        script = Path(sys.executable).with_name(name)
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {line(sys.executable, str(script))} "$@"\n', encoding="utf-8")
        command.chmod(0o755)

    reader.follow(PAGE.read_text(encoding="utf-8"))
