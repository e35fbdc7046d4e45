"""Tests of a launcher's lines, run with one command in every shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from jpsi import JobSpec
from jpsi_testing.conformance.hook_caller import Hooks, assert_selects
from jpsi_testing.conformance.launcher_base import GROUP, SHELLS, LauncherTestBase, Lines
from jpsi_testing.strategies import HOSTILE, specs

# Fixtures hold nothing that changes, and several classes of one session may inherit the test.
_HARMLESS = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors)


class LineTests(LauncherTestBase):
    """Tests that the lines are shell, and launch the command in `"$@"`."""

    def test_the_name_selects_the_plugin(self, hooks: Hooks) -> None:
        assert_selects(GROUP, self.launcher_name, hooks.plugin)

    @settings(max_examples=60, deadline=None, suppress_health_check=_HARMLESS)
    @given(spec=specs())
    def test_lines_are_shell_without_text_of_the_user(self, hooks: Hooks, spec: JobSpec) -> None:
        spec = self.with_launcher_attributes(spec)
        if hooks.has("check_spec") and list(hooks("check_spec", spec=spec)):
            return
        lines = hooks("launch", spec=spec)

        assert all(isinstance(it, str) for it in lines)
        assert any('"$@"' in it for it in lines), 'the job\'s command is in "$@"'
        for text in [*(spec.arguments or []), *(spec.environment or {}).values()]:
            assert not text or len(text) < 20 or text not in "\n".join(lines)

    @pytest.mark.parametrize("shell", SHELLS)
    @pytest.mark.parametrize("count", [1, 2])
    def test_every_shell_accepts_the_lines(
        self, hooks: Hooks, tmp_path: Path, shell: str, count: int
    ) -> None:
        if count > self.max_processes:
            pytest.skip(f"it starts {self.max_processes}")
        script = self.new_lines(hooks, tmp_path, count).script()

        done = subprocess.run([shell, "-n", script], check=False, capture_output=True, text=True)

        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("shell", SHELLS)
    @pytest.mark.parametrize("code", [0, 1, 7, 255])
    def test_the_code_is_passed_on(self, lines: Lines, shell: str, code: int) -> None:
        assert lines.run(shell, "sh", "-c", f"exit {code}").returncode == code

    @pytest.mark.clause("python-launcher-streams")
    @pytest.mark.parametrize("shell", SHELLS)
    def test_streams_are_the_jobs_and_nothing_is_added(self, lines: Lines, shell: str) -> None:
        done = lines.run(shell, "sh", "-c", "cat; echo err >&2", stdin=b"put in")

        assert (done.stdout, done.stderr) == (b"put in", b"err\n")

    @pytest.mark.parametrize("shell", SHELLS)
    def test_arguments_arrive_unchanged(self, lines: Lines, shell: str) -> None:
        expected = "".join(f"<{text}>" for text in HOSTILE).encode(errors="surrogateescape")

        assert lines.run(shell, "sh", "-c", 'printf "<%s>" "$@"', "sh", *HOSTILE).stdout == expected
