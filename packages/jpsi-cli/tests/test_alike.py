"""Jobs that `jpsi explain` explains once: those of one array, name or program that failed for one reason."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jpsi import JobState, Reason
from jpsi_cli.jobs import explain
from jpsi_cli.jobs.alike import differ, group_alike
from stored_jobs import encoded_end, stored_job

Run = Callable[..., subprocess.CompletedProcess[bytes]]
SCRIPT = """\
case $JPSI_ARRAY_INDEX in
3 | 5) echo "ValueError: element $JPSI_ARRAY_INDEX" >&2 ;;
7) echo "OSError: no room" >&2 ;;
*) exit 0 ;;
esac
exit 1
"""


def grouped(lines: Mapping[str, str | None], reason: Reason = Reason.EXIT_CODE) -> list[tuple[str, bool]]:
    """Return the jobs with these last lines in groups, each with True if they may differ."""
    end = encoded_end(JobState.FAILED, 60, 1, reason)
    jobs = [stored_job(job_id, name="fit", final=end) for job_id in lines]

    def last_line(job: object) -> str | None:
        return lines[job.id]  # type: ignore[attr-defined]  # a stored job

    return [
        ("".join(it.id for it in group), differ(group, last_line)) for group in group_alike(jobs, last_line)
    ]


@pytest.mark.parametrize(
    ("lines", "groups"),
    [
        ({"a": "no room", "b": "no room"}, [("ab", False)]),
        ({"a": "no room", "b": "no such file"}, [("a", False), ("b", False)]),
        ({"a": "line 3 is bad", "b": "other", "c": "line 77 is bad"}, [("ac", True), ("b", False)]),
        ({"a": "cat: /in/one: no file", "b": "cat: /in/other: no file"}, [("ab", True)]),
        ({"a": None, "b": None}, [("ab", True)]),
        ({"a": "", "b": "", "c": "/in/one"}, [("ab", False), ("c", False)]),
        ({"a": "no room", "b": None}, [("ab", True)]),
        ({it: f"cause {it}" for it in "abcde"}, [(it, False) for it in "abcde"]),
        ({it: f"cause {it}" for it in "abcdef"}, [("abcdef", True)]),
    ],
    ids=str,
)
def test_jobs_are_alike_if_their_last_lines_are(
    lines: Mapping[str, str | None], groups: list[tuple[str, bool]]
) -> None:
    assert grouped(lines) == groups


@pytest.mark.parametrize(
    ("count", "more"),
    [
        (1, ""),
        (2, " and 1 more like it: job-1"),
        (4, " and 3 more like it: job-1, job-2, job-3"),
        (6, " and 5 more like it: job-1, job-2, job-3 and 2 more"),
    ],
)
def test_jobs_that_are_alike_are_named(count: int, more: str) -> None:
    jobs = [stored_job(f"job-{it}") for it in range(count)]

    assert explain.describe_others(jobs, {it.id: it.id for it in jobs}) == more


def test_jobs_that_the_batch_system_ended_are_alike_whatever_they_wrote() -> None:
    assert grouped({"a": "no room", "b": "no such file"}, Reason.TIMEOUT) == [("ab", False)]


def test_elements_that_failed_for_different_reasons_are_explained_one_after_the_other(run: Run) -> None:
    array = run("submit", "--name", "fit", "-a", "1-8", "--", "sh", "-c", SCRIPT).stdout.decode().strip()
    run("wait", array)

    explained = run("explain", "fit").stdout.decode()

    _completed, first, second = explained.split("==> ")[1:]
    assert first.startswith("index 3 (")
    assert ") and 1 more like it, index 5 <==\n" in first
    assert f"may differ: jpsi logs --stderr --tail 3 '{array}[5]'\n" in first
    assert "| ValueError: element 3\n" in first
    assert second.startswith("index 7 (")
    assert "| OSError: no room\n" in second
    assert "may differ" not in second
    others = run("logs", "--stderr", "--tail", "3", f"{array}[5]").stdout.decode()
    assert others == "ValueError: element 5\n"


def test_jobs_whose_errors_cannot_be_read_may_differ(run: Run, tmp_path: Path) -> None:
    ids = [
        run("submit", "--name", "fit", "--", "sh", "-c", f"echo cause {it} >&2; exit 3")
        .stdout.decode()
        .strip()
        for it in ("one", "other")
    ]
    run("wait", *ids)
    for path in tmp_path.rglob("stderr"):
        path.unlink()

    explained = run("explain", "fit").stdout.decode()

    assert f"==> {ids[0][:8]} (fit) and 1 more like it: {ids[1][:8]} <==" in explained
    assert f"may differ: jpsi logs --stderr --tail 3 {ids[1][:8]}\n" in explained
