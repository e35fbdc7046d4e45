"""The guide's page about functions, and the program of the README, followed as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import Reader

ROOT = Path(__file__).parents[3]


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for library in ("dask", "joblib", "submitit", "tqdm"):
        pytest.importorskip(library)

    Reader(tmp_path).follow((ROOT / "docs/guide/functions.md").read_text())


def test_the_program_of_the_readme_prints_results(tmp_path: Path) -> None:
    readme = (ROOT / "packages/jpsi-functions/README.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    file = f"```{{code-block}} python\n:caption: readme.py\n\n{program}```\n"
    session = "```console\n$ pip install -q jpsi-functions\n$ python readme.py\n42\n0\n```\n"

    Reader(tmp_path).follow(file + session)
