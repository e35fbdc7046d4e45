"""The guide's page about functions, the program of the README, and the notebook, followed as written."""

from __future__ import annotations

import contextlib
import io
import json
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


def test_the_notebook_runs() -> None:
    pytest.importorskip("jpsi_cli")
    cells = json.loads((ROOT / "examples/functions.ipynb").read_text())["cells"]
    names: dict[str, object] = {"__name__": "__main__"}

    with contextlib.redirect_stderr(io.StringIO()):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)

    estimates = names["estimates"]
    assert isinstance(estimates, list)
    assert abs(sum(estimates) / 40 - 3.14) < 0.1
