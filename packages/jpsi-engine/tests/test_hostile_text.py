"""Hostile text of users: messages and logs can be printed, and do nothing to a terminal."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import jpsi
from jpsi import (
    BulkException,
    ExecutorConfig,
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JpsiError,
    ResourceSpecV1,
    StageIn,
    StageOut,
    SubmitException,
)
from jpsi.contract.options import CustomOptions
from jpsi.model.errors import one_line, printable
from jpsi_testing import PluginDirectory
from toys import install_toy

# Controls, an ANSI escape, marks that turn the direction of writing, line ends of all kinds, lone surrogates.
NASTY = ["\x00", "\x07", "\x1b[31m", "\r", "\n", "\t", "\x7f", "\x85", "\x9b", "\u2028", "\u202e", "\u2066"]
NASTY += ["\ud800", "\udcff", "\ufeff", "\U000e0041"]
NICE = ["a", "B", "/", ".", "-", "=", "${A}", "é", "'"]
texts = st.lists(st.sampled_from([*NASTY, *NICE]), min_size=1).map("".join)

Act = Callable[[JobExecutor, str], object]


def submitted(**fields: Any) -> Act:
    """Submit a job with hostile text in the place of each `TEXT`."""

    def act(executor: JobExecutor, text: str) -> None:
        filled = {name: _insert(value, text) for name, value in fields.items()}
        executor.submit(Job(JobSpec(**{"executable": "/bin/true", **filled})))

    return act


TEXT = object()


def _insert(value: Any, text: str) -> Any:
    if value is TEXT:
        return text
    if callable(value):
        return value(text)
    if isinstance(value, dict):
        return {_insert(key, text): _insert(it, text) for key, it in value.items()}
    return [_insert(it, text) for it in value] if isinstance(value, list) else value


def attributes(**fields: Any) -> Act:
    return submitted(
        attributes=lambda text: JobAttributes(**{name: _insert(it, text) for name, it in fields.items()})
    )


PLACES: dict[str, Act] = {
    "executable": submitted(executable=TEXT),
    "arguments": submitted(arguments=[TEXT, 7]),
    "arguments as text": submitted(arguments=TEXT),
    "name": submitted(name=TEXT),
    "launcher": submitted(launcher=TEXT),
    "directory": submitted(directory=Path),
    "directory as text": submitted(directory=TEXT, inherit_environment=TEXT),
    "missing directory": submitted(directory=lambda text: Path("/nonexistent", text)),
    "stdin_path": submitted(stdin_path=Path, stdout_path=7),
    "pre_launch": submitted(pre_launch=lambda text: Path("/nonexistent", text)),
    "environment name": submitted(environment={TEXT: "1"}),
    "environment value": submitted(environment={"A": TEXT, "1": "2"}),
    "environment as text": submitted(environment=TEXT),
    "resources": submitted(resources=TEXT),
    "resources of a field": submitted(resources=lambda text: ResourceSpecV1(node_count=text)),  # type: ignore[arg-type]
    "queue": attributes(queue_name=TEXT, duration=timedelta(-1)),
    "project": attributes(project_name=TEXT, duration=timedelta(-1)),
    "reservation": attributes(reservation_id=TEXT, duration=timedelta(-1)),
    "duration": attributes(duration=TEXT),
    "custom attribute": attributes(custom_attributes={TEXT: float("inf")}),
    "custom attribute of a system": attributes(
        custom_attributes={lambda text: f"toy.{text}": [TEXT, float("inf")]}
    ),
    "custom attribute's value": attributes(custom_attributes={"toy.x": {TEXT: {TEXT: float("nan")}}}),
    "user's attribute": attributes(user={TEXT: object()}),
    "after": attributes(after=[TEXT]),
    "stage_in": submitted(stage_in=lambda text: [StageIn(text, Path(text))]),
    "stage_out": submitted(stage_out=lambda text: [StageOut(Path(text), text)]),
    "cleanup": submitted(cleanup=lambda text: [Path(text), text]),
    "attach": lambda executor, text: executor.attach(Job(), text),
    "attach many": lambda executor, text: executor.attach_many([(Job(), text)]),
    "executor": lambda _, text: JobExecutor(text),
    "versions": lambda executor, text: JobExecutor(executor.name, text),
    "url": lambda executor, text: JobExecutor(executor.name, url=f"{text}://x"),
    "url's rest": lambda executor, text: JobExecutor(executor.name, url=f"ssh://{text}"),
    "job ids": lambda executor, text: executor.recall([text]),
    "document": lambda _, text: jpsi.read_document(f"executable: {text}"),
    "document's key": lambda _, text: jpsi.read_document(f"executable: a\n{text}: 1\n"),
    "document in JSON": lambda _, text: jpsi.read_document(
        json.dumps({text: text, "job": {text: text}, "executable": [text]})
    ),
    "work directory": lambda _, text: JobExecutor(
        "local", config=ExecutorConfig(work_directory=Path("/proc/nonexistent", text))
    ).submit(Job(JobSpec("/bin/true"))),
}


@pytest.fixture(params=["local", "toy"])
def executor(
    request: pytest.FixtureRequest,
    plugin_directory: PluginDirectory,
    state_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> JobExecutor:
    """Return an executor that runs all checks, and then starts nothing."""
    install_toy(plugin_directory)
    executor = JobExecutor(request.param)

    def refused(*_: object) -> str:
        msg = "nothing is started"
        raise SubmitException(msg)

    monkeypatch.setattr(executor._engine, "submit", refused)
    return executor


@pytest.mark.parametrize("act", PLACES.values(), ids=PLACES.keys())
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=texts)
@example(text="x\x1b[31m\u202ey")
@example(text="x\ny")
@example(text="x\udcffy")
def test_no_message_does_anything_to_a_terminal(
    executor: JobExecutor, caplog: pytest.LogCaptureFixture, act: Act, text: str
) -> None:
    caplog.clear()
    caplog.set_level(logging.DEBUG, "jpsi")
    error = _error_of(lambda: act(executor, text))
    found = [] if error is None else _messages(error)
    if isinstance(error, JpsiError):
        # a sentence, or a list of sentences, whose lines are ours
        first, *more = str(error).split("\n")
        assert first
        assert all(it.startswith("  - ") for it in more), more
    for it in [*found, *(record.getMessage() for record in caplog.records)]:
        it.encode("utf-8")
        assert printable(it) == it, it


def _error_of(act: Callable[[], object]) -> BaseException | None:
    try:
        act()
    except (JpsiError, TypeError, ValueError) as e:
        return e
    return None


def _messages(error: BaseException) -> list[str]:
    problems = list(error.problems) if isinstance(error, InvalidJobException) else []
    within = [str(it) for it in error.failed.values()] if isinstance(error, BulkException) else []
    return [str(error), *getattr(error, "__notes__", ()), *problems, *within]


@pytest.mark.parametrize(
    "make", [JpsiError, SubmitException, InvalidJobException, jpsi.PluginError, jpsi.ConfigError]
)
@given(text=texts)
def test_every_exception_can_be_printed(make: type[JpsiError], text: str) -> None:
    error = make(f"{text} is wrong")

    assert str(error) == error.message == printable(f"{text} is wrong")
    assert error.args == (error.message,)
    str(error).encode("utf-8")


@given(text=texts)
def test_each_problem_is_one_line(text: str) -> None:
    error = InvalidJobException.of("the job", [f"{text} is wrong", "executable is missing"])

    assert str(error).split("\n")[1:] == [f"  - {one_line(text)} is wrong", "  - executable is missing"]
    assert error.problems == (f"{one_line(text)} is wrong", "executable is missing")


@given(text=texts)
def test_the_names_of_native_options_are_reported_in_printable_form(text: str) -> None:
    custom = CustomOptions(systems=("slurm",), name="[a-z]+", example="qos", refused={})
    attributes = JobAttributes(custom_attributes={f"slurm.{text}\x1b": object()})

    found = list(custom.problems(JobSpec("a", attributes=attributes)))

    assert len(found) == 2
    assert all(it.isprintable() for it in found), found


@given(text=st.text())
def test_printable_text_is_unchanged(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert all(it == "\n" or it.isprintable() for it in printable(text))
    assert one_line(text).isprintable()
    if text.isprintable():
        assert one_line(text) == printable(text) == text
