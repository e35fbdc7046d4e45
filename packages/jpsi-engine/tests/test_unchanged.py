"""Whatever a user writes reaches the process unchanged, but for `${NAME}`."""

from __future__ import annotations

import json
import os
import string
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState

PATIENCE = 30
SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"

IN_PROCESS = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = st.sampled_from(["A", "B1", "_c", "HOME_", "IFS", "PS4", "OPTIND", "PPID", "UNSET"])
HOSTILE = st.sampled_from(
    [
        *(
            "$(touch pwned)",
            "`touch pwned`",
            "'",
            '"',
            "\\",
            "\n",
            "\r",
            "\t",
            "*",
            "~",
            "!",
            "#",
            "$",
            "${",
            "}",
        ),
        *(
            "$$",
            "${1}",
            "$A",
            "%s",
            "-n",
            "--",
            "=",
            ";",
            "&",
            "|",
            "<",
            ">",
            "é",
            "漢",
            "🙂",
            "\x1b",
            "\x7f",
        ),
    ]
)
REFERENCES = st.builds("{}{{{}}}".format, st.sampled_from(["$", "$$", "$$$"]), NAMES)
TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), HOSTILE, REFERENCES
    ),
    max_size=5,
).map("".join)


def model(text: str, environment: dict[str, str], *, keep: bool) -> str:
    """Apply the `${NAME}` rule of the documentation, character by character."""
    result, rest = "", text
    letters = string.ascii_letters + "_"
    while rest:
        dollars = len(rest) - len(rest.lstrip("$"))
        name = ""
        if dollars and rest[dollars : dollars + 1] == "{":
            name = rest[dollars + 1 :].partition("}")[0] if "}" in rest[dollars:] else ""
        is_name = name[:1] in letters and all(c in letters + string.digits for c in name) if name else False
        if is_name and dollars == 1:
            unset = rest[: len(name) + 3] if keep else ""
            result += environment.get(name, unset)
            rest = rest[len(name) + 3 :]
        elif is_name:
            result += rest[1 : dollars + len(name) + 2]
            rest = rest[dollars + len(name) + 2 :]
        else:
            result += rest[: max(dollars, 1)]
            rest = rest[max(dollars, 1) :]
    return result


def run_probe(executor: JobExecutor, spec: JobSpec) -> tuple[list[str], dict[str, str], str]:
    job = Job(spec)
    executor.submit(job)
    status = job.wait(PATIENCE)
    assert status is not None
    assert job.streams is not None
    assert status.state is JobState.COMPLETED, (status, job.streams.stderr.read_text())
    arguments, environment, directory = json.loads(job.streams.stdout.read_text())
    return arguments, environment, directory


@pytest.mark.clause("spec-arguments", "spec-expansion-arguments")
@given(
    st.lists(TEXTS, max_size=4), st.dictionaries(NAMES.filter(lambda n: n != "UNSET"), TEXTS), st.booleans()
)
@IN_PROCESS
def test_arguments_and_values_follow_the_rule_and_nothing_else(
    executor: JobExecutor, arguments: list[str], values: dict[str, str], inherit: bool
) -> None:
    spec = JobSpec(sys.executable, ["-ISc", SHOW, *arguments])
    spec.environment = dict(values)
    spec.inherit_environment = inherit

    found_arguments, found_environment, _ = run_probe(executor, spec)

    known: dict[str, str] = {}
    for name, value in values.items():
        known[name] = model(value, known, keep=False)
    assert found_arguments == [model(text, known, keep=True) for text in arguments]
    assert {name: found_environment[name] for name in known} == known


@given(st.lists(TEXTS, max_size=4))
@IN_PROCESS
def test_escaped_text_arrives_unchanged(executor: JobExecutor, arguments: list[str]) -> None:
    spec = JobSpec(sys.executable, ["-ISc", SHOW, *map(jpsi.escape, arguments)])

    assert run_probe(executor, spec)[0] == arguments


FILE_NAMES = TEXTS.map(lambda text: text.replace("/", "_")[:60]).filter(
    lambda text: text not in {"", ".", "..", "~"} and len(os.fsencode(text)) < 200
)


@pytest.mark.clause("path")
@given(FILE_NAMES, FILE_NAMES, TEXTS)
@IN_PROCESS
def test_paths_and_names_are_unchanged(
    executor: JobExecutor, tmp_path: Path, directory: str, file: str, name: str
) -> None:
    place = tmp_path / directory
    place.mkdir(exist_ok=True)
    (place / "input").write_text("")
    spec = JobSpec(sys.executable, ["-ISc", SHOW], name=name, directory=place)
    spec.stdin_path = Path("input")
    spec.stdout_path = Path(file)

    job = Job(spec)
    executor.submit(job)
    assert job.wait(PATIENCE) is not None

    assert job.status.state is JobState.COMPLETED
    assert json.loads((place / file).read_text())[2] == str(place)
    assert not (place / "pwned").exists()
    (place / file).unlink()
    (place / "input").unlink(missing_ok=True)
