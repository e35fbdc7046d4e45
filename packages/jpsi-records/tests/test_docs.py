"""The page about requests, and the README, followed as written."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from jpsi_records.model.constraints import problems
from pages import Reader

PAGE = Path(__file__).parents[3] / "docs/guide/requests.md"
README = Path(__file__).parents[1] / "README.md"


def test_the_examples_of_the_page_print_the_documented_output(tmp_path: Path) -> None:
    Reader(tmp_path).follow(PAGE.read_text())


def test_the_constraints_of_the_page_are_constraints() -> None:
    found = re.findall(r"`(\{(?:vcpus|ram|gpus): .*?\})`", PAGE.read_text())

    assert len(found) == 2
    assert [list(problems(yaml.safe_load(it))) for it in found] == [[], []]


def test_the_program_of_the_readme_succeeds(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    file = f"```{{code-block}} python\n:caption: readme.py\n\n{program}```\n"

    Reader(tmp_path).follow(f"{file}```console\n$ python readme.py\ncomputed\nthere\n```\n")
