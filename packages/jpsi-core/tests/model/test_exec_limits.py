"""The limits of exec(2): jpsi refuses what the kernel would refuse, compared with the kernel itself."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from jpsi.model import spec_problems
from jpsi.model.spec import JobSpec
from jpsi.model.spec_problems import all_bytes, exec_limits, problems, text_bytes

TRUE = "/bin/true"
LONGEST = 32 * os.sysconf("SC_PAGE_SIZE")

linux = pytest.mark.skipif(sys.platform != "linux", reason="other kernels limit the sum alone")


def is_taken(arguments: list[str], environment: dict[str, str]) -> bool:
    """Return True if the kernel starts a program with this."""
    try:
        subprocess.run([TRUE, *arguments], env=environment, check=True)
    except OSError as e:
        if e.errno != errno.E2BIG:
            raise
        return False
    return True


def is_sound(arguments: list[str], environment: dict[str, str | None]) -> bool:
    """Return True if no limit is reported for a program with these texts."""
    return not list(exec_limits(JobSpec(TRUE, arguments, environment=environment)))


@linux
@pytest.mark.parametrize("size", [LONGEST - 2, LONGEST - 1, LONGEST, LONGEST + 1])
@pytest.mark.parametrize("letter", ["x", "é"])
def test_one_text_is_refused_where_the_kernel_refuses_it(size: int, letter: str) -> None:
    text = letter * (size // len(letter.encode())) + "x" * (size % len(letter.encode()))
    name = text[:-2]

    assert is_sound([text], {}) is is_taken([text], {}) is (size < LONGEST)
    assert is_sound([], {"A": name}) is is_taken([], {"A": name})
    assert text_bytes() == LONGEST


def test_all_together_is_refused_where_the_kernel_refuses_it() -> None:
    """The results agree within a page, which is the unit of the kernel."""
    each = "x" * 99_991
    count = all_bytes() // (100_000)
    room = all_bytes() - count * 100_000 - len(TRUE) - 9

    def found(spare: int) -> tuple[list[str], list[str]]:
        last = "y" * max(0, room - 9 - spare)
        return [*[each] * count, last], list(exec_limits(JobSpec(TRUE, [*[each] * count, last])))

    beyond, problems_beyond = found(-9)
    assert len(problems_beyond) == 1
    assert str(all_bytes()) in problems_beyond[0]
    within, problems_within = found(0)
    assert not problems_within
    assert not is_taken([*beyond, "z" * 8192], {})
    assert is_taken(within[:-2], {})


CASES = {
    "an argument": (JobSpec("a", ["b", "x" * LONGEST]), ["arguments[1]", str(LONGEST + 1), str(LONGEST)]),
    "a variable": (
        JobSpec("a", environment={"BIG": "x" * LONGEST}),
        ["environment['BIG']", str(LONGEST + 5)],
    ),
    "the program": (JobSpec("x" * LONGEST), ["executable", str(LONGEST + 1)]),
    "what a reference stands for": (
        JobSpec("a", ["${A}${B}"], environment={"A": "x" * 70_000, "B": "${A}"}),
        ["arguments[0]", "140001"],
    ),
    "what a reference in a variable stands for": (
        JobSpec("a", environment={"A": "x" * 70_000, "B": "${A}${A}"}),
        ["environment['B']", "140003"],
    ),
}


@linux
@pytest.mark.parametrize(("spec", "words"), CASES.values(), ids=CASES.keys())
def test_problem_names_the_text_its_size_and_the_limit(spec: JobSpec, words: list[str]) -> None:
    (problem,) = problems(spec)

    assert all(word in problem for word in words), problem
    assert len(problem) < 200


@linux
@pytest.mark.parametrize(
    "spec",
    [
        JobSpec("a", ["x" * (LONGEST - 1)]),
        # its expansion is unknown
        JobSpec("a", ["${A}" * 40_000]),
        JobSpec("a", ["${A}"], environment={"A": "x" * (LONGEST - 3)}),
        JobSpec("a", environment={"A": "x" * LONGEST, "B": None} | {"A": None}),
    ],
    ids=["as long as may be", "unknown", "a variable", "unset"],
)
def test_texts_that_the_kernel_accepts_are_no_problem(spec: JobSpec) -> None:
    assert problems(spec) == []


def test_inherited_variable_counts_unless_the_spec_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_problems, "all_bytes", lambda: 1000)
    inherited = {"A": "x" * 600, "B": "y" * 300}
    spec = JobSpec("a", ["z" * 80])

    assert list(exec_limits(spec)) == []
    (problem,) = exec_limits(spec, inherited)
    assert "2 of them inherited" in problem
    spec.environment = {"A": None}
    assert list(exec_limits(spec, inherited)) == []


@linux
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (JobSpec("", ["x" * LONGEST]), ["executable is missing", "arguments[0] takes"]),
        (JobSpec("a", ["\0", "x" * LONGEST]), ["arguments[0] contains a NUL", "arguments[1] takes"]),
        (
            JobSpec("a", environment={"A": [], "B-C": "", "D": "x" * LONGEST}),  # type: ignore[dict-item]  # wrong
            ["environment['A'] must be text", "'B-C'", "environment['D'] takes"],
        ),
        (JobSpec("a", 7, environment={"A": "x" * LONGEST}), ["arguments must be", "environment['A'] takes"]),  # type: ignore[arg-type]  # wrong
    ],
    ids=["executable", "arguments", "environment", "kind"],
)
def test_limits_are_reported_beside_other_problems(spec: JobSpec, words: list[str]) -> None:
    found = problems(spec)

    assert len(words) == len(found)
    assert all(word in problem for word, problem in zip(words, found, strict=True)), found


@pytest.mark.parametrize("wrong", [{"arguments": [7]}, {"environment": {"A": []}}, {"arguments": ["\0"]}])
def test_wrong_field_is_reported_once(wrong: dict[str, object]) -> None:
    assert len(problems(JobSpec("a", **wrong))) == 1  # type: ignore[arg-type]  # that is what is tried
