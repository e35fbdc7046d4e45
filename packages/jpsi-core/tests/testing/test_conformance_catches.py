"""A backend with a mistake does not pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jpsi.testing import toy

_TEST = """
import broken
from jpsi.testing import ExecutorConformance

class TestBroken(ExecutorConformance):
    executor_name = "broken"
    dialect = "toy"
    submit_command = "tsubmit"
    plugin = broken
"""

#: What is replaced by what, and the test that must see it.
MISTAKES = {
    "no tag": ('    yield "tag", context.tag\n', "", "found_by_its_tag"),
    "a line of the user's": (
        'Directive.of("#TOY", option, value)',
        'Directive(f"#TOY {option}={value}")',
        "one_line",
    ),
    "what is not there is done": (
        "def parse_status(result: CommandResult) -> dict[str, Observation]:\n    return {",
        "def parse_status(result: CommandResult) -> dict[str, Observation]:\n    return _GONE | {",
        "not_mentioned",
    ),
    "a strange word is a failure": ("(None, None))", "(JobState.FAILED, None))", "nobody_knows"),
    "no answer is an empty answer": ("result.checked().stdout", "result.stdout", "no_contact"),
    "a guessed id": ("if len(found) != 1:", "if False:", "garbage_is_no_native_id"),
    "a clock": (
        "def cancel(native_ids: Sequence[str]) -> Command:\n",
        "def query(native_ids: Sequence[str]) -> Command:\n    import time; time.time()\n",
        "found_by_its_tag",
    ),
    "a changed spec": (
        "    attributes = spec.attributes or",
        "    spec.name = 'x'\n    attributes = spec.attributes or",
        "found_by_its_tag",
    ),
    "a hook is missing": ("def parse_status", "def parse_statuses", "required_hook"),
}


_GONE = "\n_GONE = {'999999': Observation(state=JobState.COMPLETED, word='gone')}\n"


def conforms(folder: Path, source: str, keyword: str) -> subprocess.CompletedProcess[str]:
    (folder / "broken.py").write_text(source + _GONE)
    (folder / "test_broken.py").write_text(_TEST)
    arguments = ["-q", "-p", "no:cacheprovider", "-k", keyword, "test_broken.py"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], check=False, capture_output=True, text=True, cwd=folder
    )


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen(tmp_path: Path, mistake: str) -> None:
    right, wrong, keyword = MISTAKES[mistake]
    source = Path(toy.__file__).read_text()
    assert source.count(right) == 1, "the toy has changed"

    done = conforms(tmp_path, source.replace(right, wrong), keyword)

    assert done.returncode == 1, done.stdout
    assert "failed" in done.stdout


def test_the_toy_itself_passes_the_same(tmp_path: Path) -> None:
    """Or else the mistakes would prove nothing."""
    keywords = " or ".join(sorted({keyword for *_, keyword in MISTAKES.values()}))

    done = conforms(tmp_path, Path(toy.__file__).read_text(), keywords)

    assert done.returncode == 0, done.stdout
