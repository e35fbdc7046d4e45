"""The hooks of a backend: there, and nothing but functions of what they are given."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from jpsi import JobAttributes, JobSpec
from jpsi.fakes import Dialect, FakeClock, FakeScheduler, Invocation, Outcome, answer
from jpsi.fakes import dialect as dialect_of
from jpsi.plugin import (
    CommandResult,
    ExecutorConfig,
    JobState,
    NotOffered,
    Observation,
    SubmitException,
)
from jpsi.testing.asking import TAG, Hooks
from jpsi.testing.conformance_kit import Kit
from jpsi.testing.strategies import HOSTILE, specs

_REQUIRED = ("render_script", "submit", "parse_submit", "query", "parse_status", "cancel")
_GARBAGE = ("", "\n", "garbage\n", "{", "[]", "null", "Welcome to the cluster!\n\n", "a|b|c\n", "\x00\n")


class HookTests(Kit):
    """Strings in, values out."""

    @pytest.fixture
    def hooks(self, config: ExecutorConfig) -> Hooks:
        """The plugin's hooks."""
        plugin = self.plugin
        if plugin is None:
            (entry,) = entry_points(group="jpsi.executors", name=self.executor_name)
            plugin = entry.load()
        if callable(getattr(plugin, "make_engine", None)):
            pytest.skip("it has an engine of its own and needs no commands")
        return Hooks(plugin, config)

    @pytest.fixture
    def played(self) -> tuple[FakeScheduler, Dialect]:
        """A fake batch system whose jobs are played, and its dialect."""
        if self.dialect is None:
            pytest.skip("there is no dialect")
        found = dialect_of(self.dialect) if isinstance(self.dialect, str) else self.dialect
        return FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60)), found

    def test_every_required_hook_is_there(self, hooks: Hooks) -> None:
        assert [name for name in _REQUIRED if not hooks.has(name)] == []

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(spec=specs())
    def test_a_script_of_any_job_holds_its_tag(self, hooks: Hooks, spec: JobSpec) -> None:
        if hooks.has("check_spec"):
            assert all(isinstance(problem, str) for problem in hooks("check_spec", spec=spec))
        script = hooks.script(spec)
        if script is None:
            return
        command = hooks("submit", script=script, spec=spec)
        said = [script.text, *command.argv, command.stdin or "", *command.environment.values()]
        assert any(TAG in text for text in said), "the job could not be found again: its tag is nowhere"

    @pytest.mark.parametrize("where", ["name", "queue_name", "project_name", "reservation_id"])
    def test_a_directive_is_one_line_whatever_stands_in_it(self, hooks: Hooks, where: str) -> None:
        for text in HOSTILE:
            attributes = None if where == "name" else JobAttributes(**{where: text})  # type: ignore[arg-type]  # one of three texts
            spec = JobSpec("/bin/true", name=text if where == "name" else None, attributes=attributes)
            script = hooks.script(spec)
            assert script is None or all(len(it.text.splitlines()) == 1 for it in script.directives), text

    @pytest.mark.parametrize("stdout", _GARBAGE)
    def test_garbage_is_no_native_id(self, hooks: Hooks, stdout: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011  the words are the plugin's
            hooks("parse_submit", result=CommandResult(returncode=0, stdout=stdout))

    @pytest.mark.parametrize("stdout", _GARBAGE)
    @pytest.mark.parametrize("hook", ["parse_status", "parse_finished"])
    def test_garbage_says_nothing_about_any_job(self, hooks: Hooks, hook: str, stdout: str) -> None:
        if not hooks.has(hook):
            pytest.skip(f"it has no {hook}")
        with contextlib.suppress(SubmitException, ValueError):
            result = CommandResult(returncode=0, stdout=stdout)
            assert dict(hooks(hook, result=result, native_ids=["1"])) == {}

    def test_no_contact_is_no_answer(self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]) -> None:
        """An empty answer would say that every job is gone."""
        scheduler, _ = played
        scheduler.faults.down()
        result = self._call(played, hooks("query", native_ids=["1"]))

        with pytest.raises(SubmitException):
            hooks("parse_status", result=result, native_ids=["1"])

    def test_a_job_is_found_by_its_tag_and_id(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        native_id = self._submit(hooks, played)

        observed = self._observed(hooks, played, native_id)[native_id]
        assert observed.state in {JobState.QUEUED, JobState.ACTIVE}
        command = hooks("find", tags=[TAG, "jpsi-none-1"]) if hooks.has("find") else None
        if command is not None and not isinstance(command, NotOffered):
            result = self._call(played, command)
            assert hooks("parse_find", result=result, tags=[TAG, "jpsi-none-1"]) == {TAG: native_id}

    def test_a_job_that_is_not_there_is_not_mentioned(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        native_id = self._submit(hooks, played)

        assert self.unknown_id not in self._observed(hooks, played, native_id, self.unknown_id)

    def test_a_word_that_nobody_knows_is_no_state(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        native_id = self._submit(hooks, played)
        result = self._call(played, hooks("query", native_ids=[native_id]))
        word = hooks("parse_status", result=result, native_ids=[native_id])[native_id].word
        strange = CommandResult(
            returncode=result.returncode,
            stdout=re.sub(rf"\b{re.escape(word)}\b", "XYZZY", result.stdout),
            stderr=result.stderr,
        )

        observed = hooks("parse_status", result=strange, native_ids=[native_id]).get(native_id)

        assert observed is None or observed.state is None, f"taken for {observed}"

    def _submit(self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]) -> str:
        spec = JobSpec("/bin/true", name="a name")
        script = hooks.script(spec)
        result = self._call(played, hooks("submit", script=script, spec=spec))
        assert result.returncode == 0, result
        return str(hooks("parse_submit", result=result))

    def _observed(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], *native_ids: str
    ) -> Mapping[str, Observation]:
        result = self._call(played, hooks("query", native_ids=list(native_ids)))
        found: Mapping[str, Observation] = hooks("parse_status", result=result, native_ids=list(native_ids))
        return found

    @staticmethod
    def _call(played: tuple[FakeScheduler, Dialect], command: Any) -> CommandResult:  # noqa: ANN401  a hook's answer
        scheduler, dialect = played
        environment = {"PATH": "/usr/bin:/bin", **command.environment}
        invocation = Invocation(argv=command.argv, stdin=command.stdin or "", environment=environment)
        return answer(scheduler, dialect, invocation)
