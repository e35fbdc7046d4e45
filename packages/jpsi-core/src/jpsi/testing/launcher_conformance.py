"""The tests that every launcher passes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings

from jpsi import JobSpec
from jpsi.plugin import ExecutorConfig, ResourceSpecV1
from jpsi.registry.discovery import installed
from jpsi.testing.asking import Hooks, assert_leads_to
from jpsi.testing.strategies import HOSTILE, specs

_GROUP = "jpsi.launchers"
_SHELLS = [found for name in ("dash", "bash", "sh") if (found := shutil.which(name))]
# Fixtures hold nothing that changes, and several classes of one session may inherit the test.
_HARMLESS = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors)
_FRAME = "#!/bin/sh\n(\n{lines}\n)\n"


class LauncherConformance:
    """Inherit it in a launcher's tests, and say what is to be tested.

    class TestMpirun(LauncherConformance):
        launcher_name = "mpirun"
        program = "mpirun"
    """

    #: The name that the launcher is asked for by.
    launcher_name: ClassVar[str]
    #: The program that it needs; tests that run it are skipped where it is missing.
    program: ClassVar[str | None] = None
    #: The module or object that implements the hooks; None is what the entry point of the name leads to.
    plugin: Any = None

    @pytest.fixture
    def hooks(self) -> Hooks:
        """The plugin's hooks."""
        plugin = self.plugin
        if plugin is None:
            plugin = installed().find(_GROUP, self.launcher_name).load()
        return Hooks(plugin, ExecutorConfig())

    def test_the_name_leads_to_the_plugin(self) -> None:
        if self.plugin is None:
            installed().find(_GROUP, self.launcher_name).load()
            return
        assert_leads_to(_GROUP, self.launcher_name, self.plugin)

    @pytest.fixture
    def script(self, hooks: Hooks, tmp_path: Path) -> Path:
        """A script that launches its arguments once."""
        if self.program is not None and shutil.which(self.program) is None:
            pytest.skip(f"{self.program} is not installed")
        return self._script(hooks, tmp_path)

    @settings(max_examples=60, deadline=None, suppress_health_check=_HARMLESS)
    @given(spec=specs())
    def test_lines_are_shell_and_nothing_of_the_users_stands_in_them(
        self, hooks: Hooks, spec: JobSpec
    ) -> None:
        if hooks.has("check_spec") and list(hooks("check_spec", spec=spec)):
            return
        lines = hooks("launch", spec=spec)

        assert all(isinstance(it, str) for it in lines)
        assert any('"$@"' in it for it in lines), 'the job\'s command is in "$@"'
        for text in [*(spec.arguments or []), *(spec.environment or {}).values()]:
            assert not text or len(text) < 20 or text not in "\n".join(lines)

    @pytest.mark.parametrize("shell", _SHELLS)
    def test_every_shell_takes_the_lines(self, hooks: Hooks, tmp_path: Path, shell: str) -> None:
        script = self._script(hooks, tmp_path)

        done = subprocess.run([shell, "-n", script], check=False, capture_output=True, text=True)

        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("shell", _SHELLS)
    @pytest.mark.parametrize("code", [0, 1, 7, 255])
    def test_the_code_is_passed_on(self, script: Path, shell: str, code: int) -> None:
        assert _run(shell, script, "sh", "-c", f"exit {code}").returncode == code

    @pytest.mark.parametrize("shell", _SHELLS)
    def test_streams_are_the_jobs_and_nothing_is_added(self, script: Path, shell: str) -> None:
        done = _run(shell, script, "sh", "-c", "cat; echo err >&2", stdin=b"put in")

        assert (done.stdout, done.stderr) == (b"put in", b"err\n")

    @pytest.mark.parametrize("shell", _SHELLS)
    def test_arguments_arrive_unchanged(self, script: Path, shell: str) -> None:
        texts = [text for text in HOSTILE if "\n" not in text]
        expected = "".join(f"{text}\n" for text in texts).encode(errors="surrogateescape")

        assert _run(shell, script, "sh", "-c", 'printf "%s\\n" "$@"', "sh", *texts).stdout == expected

    def test_a_missing_program_is_told(self, hooks: Hooks, tmp_path: Path) -> None:
        if self.program is None:
            pytest.skip("it needs no program")
        script = self._script(hooks, tmp_path)

        done = _run("/bin/sh", script, "/bin/true", environment={"PATH": "/nonexistent"})

        assert done.returncode != 0
        assert self.program.encode() in done.stderr

    def _script(self, hooks: Hooks, tmp_path: Path) -> Path:
        spec = JobSpec("/bin/true", resources=ResourceSpecV1(process_count=1), launcher=self.launcher_name)
        lines: Sequence[str] = hooks("launch", spec=spec)
        path = tmp_path / "launch"
        path.write_text(_FRAME.format(lines="\n".join(lines)))
        return path


def _run(
    shell: str,
    script: Path,
    *arguments: str,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [shell, script, *arguments],
        check=False,
        input=stdin,
        capture_output=True,
        env=environment,
        timeout=60,
    )
