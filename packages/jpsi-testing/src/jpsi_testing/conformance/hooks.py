"""Conformance tests of a backend's hooks: the required ones exist, and all are pure functions."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from jpsi import JobAttributes, JobExecutor, JobSpec
from jpsi.plugin import CommandResult, ExecutorConfig, SubmitException
from jpsi.plugin.engine import installed, load_plugin
from jpsi_testing.conformance.base import ExecutorTestBase, shell
from jpsi_testing.conformance.hook_caller import TAG, Hooks, assert_selects
from jpsi_testing.strategies import HOSTILE, specs

_GROUP = "jpsi.executors"
# Fixtures hold nothing that changes, several classes of a session may inherit a test, and a machine may be
# busy.
_HARMLESS = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow)
_REQUIRED = ("render_script", "submit", "parse_submit", "query", "parse_status", "cancel")
_GARBAGE = ("", "\n", "garbage\n", "{", "[]", "null", "Welcome to the cluster!\n\n", "a|b|c\n", "\x00\n")


class HookTests(ExecutorTestBase):
    """Tests that call hooks with strings, and check the values that they return."""

    @pytest.fixture
    def hooks(self, config: ExecutorConfig) -> Hooks:
        """Return the plugin's hooks; skip the test if the plugin has an engine of its own."""
        plugin = self.plugin
        if plugin is None:
            plugin = load_plugin(installed().find(_GROUP, self.executor_name))
        found = Hooks(plugin, config)
        if found.has("make_engine") and not any(map(found.has, _REQUIRED)):
            pytest.skip("it has an engine of its own and needs no commands")
        return found

    @pytest.mark.clause("executor-name")
    def test_the_name_selects_the_plugin(self) -> None:
        """The entry point of the name leads to the plugin's hooks."""
        if self.plugin is not None:
            assert_selects(_GROUP, self.executor_name, self.plugin)

    def test_every_required_hook_is_implemented(self, hooks: Hooks) -> None:
        """The plugin has every hook that the engine cannot do without."""
        missing = [name for name in _REQUIRED if not hooks.has(name)]
        assert missing == [], f"every backend implements the hooks {missing}; this one does not"

    @settings(max_examples=60, deadline=None, suppress_health_check=_HARMLESS)
    @given(spec=specs())
    def test_a_script_of_any_job_holds_its_tag(self, hooks: Hooks, spec: JobSpec) -> None:
        """The script or the submit command has the tag, by which jpsi finds the job."""
        assert all(isinstance(problem, str) for problem in hooks.get("check_spec", (), spec=spec))
        script = hooks.script(spec)
        if script is None:
            return
        command = hooks("submit", script=script, spec=spec)
        texts = [script.text, *command.argv, command.stdin or "", *command.environment.values()]
        assert any(TAG in text for text in texts), (
            f"jpsi could not find the job again: neither script nor command has its tag {TAG}"
        )

    @settings(max_examples=60, deadline=None, suppress_health_check=_HARMLESS)
    @given(spec=specs())
    def test_read_script_reads_what_render_script_writes(self, hooks: Hooks, spec: JobSpec) -> None:
        """`read_script` reads every directive, with queue, project and a duration that is no shorter."""
        if not hooks.has("read_script"):
            pytest.skip("it has no read_script")
        attributes = spec.attributes
        plain = JobAttributes(
            duration=attributes.duration,
            queue_name=attributes.queue_name,
            project_name=attributes.project_name,
        )
        job = JobSpec("/bin/true", attributes=plain)
        script = hooks.script(job)
        if script is None or list(hooks.get("check_spec", (), spec=job)):
            return
        read = hooks("read_script", text=script.text)
        found = read.spec.attributes
        assert read.directives == len(script.directives)
        assert (found.queue_name, found.project_name) == (plain.queue_name, plain.project_name)
        if plain.duration:
            assert found.duration is not None
            assert found.duration >= plain.duration

    @pytest.mark.parametrize("text", ["", "\n", "#!/bin/sh\n# true\n\ntrue\n", *_GARBAGE, *HOSTILE])
    def test_a_script_for_another_batch_system_has_no_directives(self, hooks: Hooks, text: str) -> None:
        """`read_script` finds none in other text."""
        if not hooks.has("read_script"):
            pytest.skip("it has no read_script")
        assert hooks("read_script", text=f"true {text}").directives == 0

    @pytest.mark.parametrize("where", ["name", *JobAttributes.text_names()])
    def test_a_directive_is_one_line_whatever_its_value(self, hooks: Hooks, where: str) -> None:
        """No value of an attribute makes a second line; the hook may refuse the value."""
        for text in HOSTILE:
            attributes = None if where == "name" else JobAttributes(**{where: text})  # type: ignore[arg-type]  # one of three texts
            spec = JobSpec("/bin/true", name=text if where == "name" else None, attributes=attributes)
            script = hooks.script(spec)
            for directive in () if script is None else script.directives:
                assert len(directive.text.splitlines()) == 1, (
                    f"a directive is one line; with {where}={text!r} there is {directive!r}"
                )

    @pytest.mark.clause("python-submit-output")
    @pytest.mark.parametrize("stdout", _GARBAGE)
    def test_garbage_is_no_native_id(self, hooks: Hooks, stdout: str) -> None:
        """`parse_submit` raises ValueError for output without a native id."""
        with contextlib.suppress(ValueError):
            found = hooks("parse_submit", result=CommandResult(returncode=0, stdout=stdout))
            pytest.fail(
                f"the submit command printed {stdout!r}, which parse_submit took for the id {found!r}"
            )

    @pytest.mark.clause("python-polling")
    @pytest.mark.parametrize("stdout", _GARBAGE)
    @pytest.mark.parametrize("hook", ["parse_status", "parse_finished"])
    def test_garbage_is_no_status(self, hooks: Hooks, hook: str, stdout: str) -> None:
        """An empty answer would mean that every job is gone."""
        if not hooks.has(hook):
            pytest.skip(f"it has no {hook}")
        result = CommandResult(returncode=0, stdout=stdout)

        for native_ids in (["1"], ["1", "2"]):
            with contextlib.suppress(SubmitException, ValueError):
                found = hooks(hook, result=result, native_ids=native_ids)
                pytest.fail(f"{stdout!r} is no answer, and {hook} took it for {found!r}")

    def test_a_running_job_knows_its_native_id(
        self, hooks: Hooks, executor: JobExecutor, tmp_path: Path
    ) -> None:
        """Without it jpsi would take the second run of a requeued job for a duplicate, and stop it."""
        variable = getattr(hooks.get("capabilities"), "id_variable", "")
        if not variable:
            pytest.skip("its capabilities name no id_variable")
        commands = "".join(f'printf "%s\\n" "${{{name}-}}"; ' for name in variable.split())
        job = self.submit(executor, shell(f'{{ {commands}}} > "$1"', tmp_path / "id"))
        self.end(job)

        lines = (tmp_path / "id").read_text(encoding="utf-8").split()
        found = lines[0] if lines else ""
        spelled = hooks.get("canonical_id", found, native_id=found) if found else found
        assert spelled == job.native_id, (
            f"id_variable is {variable!r}; in the running job {job.native_id} that is {found or 'not set'!r}"
        )
