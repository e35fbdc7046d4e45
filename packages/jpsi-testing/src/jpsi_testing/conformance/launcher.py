"""`LauncherConformance`: the conformance tests that every launcher passes; its tests inherit the class.

This module tests a launcher's lines in every shell, and signals; `launcher_jobs` tests whole jobs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from jpsi import JobSpec
from jpsi_testing.conformance.hook_caller import Hooks, assert_selects
from jpsi_testing.conformance.launcher_base import (
    GROUP,
    SHELLS,
    LauncherTestBase,
    Lines,
    ignored_signals,
    processes_of,
)
from jpsi_testing.conformance.launcher_jobs import JobTests
from jpsi_testing.strategies import HOSTILE, specs

# Fixtures hold nothing that changes, and several classes of one session may inherit the test.
_HARMLESS = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors)
# A process that reports its start, and stays.
_STAY_ALIVE = 'echo >"$1/$$"; exec sleep 1000'


class LineTests(LauncherTestBase):
    """Tests that the lines are shell, and launch the command in `"$@"`."""

    def test_the_name_selects_the_plugin(self, hooks: Hooks) -> None:
        """The entry point of the name leads to the plugin's hooks."""
        assert_selects(GROUP, self.launcher_name, hooks.plugin)

    @settings(max_examples=60, deadline=None, suppress_health_check=_HARMLESS)
    @given(spec=specs())
    def test_lines_are_shell_without_text_of_the_user(self, hooks: Hooks, spec: JobSpec) -> None:
        """The lines refer to the command as `"$@"` and quote no argument and no variable of the job."""
        spec = self.with_launcher_attributes(spec)
        if list(hooks.get("check_spec", (), spec=spec)):
            return
        lines = hooks("launch", spec=spec)

        assert all(isinstance(it, str) for it in lines), f"launch should return lines of shell, not {lines!r}"
        assert any('"$@"' in it for it in lines), f'the job\'s command is in "$@"; no line has that: {lines}'
        for text in [*(spec.arguments or []), *(spec.environment or {}).values()]:
            assert not text or len(text) < 20 or text not in "\n".join(lines), (
                f"the lines have the user's text {text!r}, which is no shell"
            )

    @pytest.mark.parametrize("shell", SHELLS)
    @pytest.mark.parametrize("count", [1, 2])
    def test_every_shell_accepts_the_lines(
        self, hooks: Hooks, tmp_path: Path, shell: str, count: int
    ) -> None:
        """Each shell on this machine parses the lines without an error."""
        if count > self.max_processes:
            pytest.skip(f"it starts {self.max_processes}")
        script = self.new_lines(hooks, tmp_path, count).script()

        done = subprocess.run([shell, "-n", script], check=False, capture_output=True, text=True)

        assert (done.returncode, done.stderr) == (0, ""), f"{shell} does not accept the lines: {done.stderr}"

    @pytest.mark.parametrize("shell", SHELLS)
    @pytest.mark.parametrize("code", [0, 1, 7, 255])
    def test_the_code_is_passed_on(self, lines: Lines, shell: str, code: int) -> None:
        """The exit code of the lines is that of the command."""
        found = lines.run(shell, "sh", "-c", f"exit {code}").returncode
        assert found == code, f"the command exited with {code}, and the lines with {found}"

    @pytest.mark.clause("python-launcher-streams")
    @pytest.mark.parametrize("shell", SHELLS)
    def test_streams_are_the_jobs_and_nothing_is_added(self, lines: Lines, shell: str) -> None:
        """The launcher adds no output, and passes input to the command."""
        done = lines.run(shell, "sh", "-c", "cat; echo err >&2", stdin=b"put in")

        assert (done.stdout, done.stderr) == (b"put in", b"err\n"), (
            f"the command printed its input b'put in', and b'err\\n' as error output; "
            f"the lines printed {done.stdout!r} and {done.stderr!r}"
        )

    @pytest.mark.parametrize("shell", SHELLS)
    def test_arguments_arrive_unchanged(self, lines: Lines, shell: str) -> None:
        """The launcher changes no argument of the command."""
        expected = "".join(f"<{text}>" for text in HOSTILE).encode(errors="surrogateescape")

        found = lines.run(shell, "sh", "-c", 'printf "<%s>" "$@"', "sh", *HOSTILE).stdout
        assert found == expected, f"the command should get the arguments {expected!r}; it got {found!r}"


class SignalTests(LauncherTestBase):
    """Tests for batch systems that signal only the job's first process."""

    @pytest.mark.parametrize("shell", SHELLS)
    def test_term_leaves_no_process_behind(self, hooks: Hooks, tmp_path: Path, shell: str) -> None:
        """TERM to the launcher ends every process of the job."""
        if not self.ends_on_term:
            pytest.skip("it leaves that to the batch system")
        self.need_program()
        job_id = str(uuid.uuid4())
        started_files = tmp_path / "there"
        started_files.mkdir()
        lines = self.new_lines(hooks, tmp_path, self.max_processes)
        process = lines.start(shell, ["/bin/sh", "-c", _STAY_ALIVE, "sh", str(started_files)], job_id=job_id)
        try:
            self.wait_until(
                lambda: len(list(started_files.iterdir())) == self.max_processes,
                f"the launcher has started {self.max_processes} processes",
            )

            os.kill(process.pid, signal.SIGTERM)
            code = process.wait(self.timeout_seconds)

            self.wait_until(lambda: processes_of(job_id) == [], "after TERM no process is left")
            assert code != 0, "TERM ended the processes, and the lines exited with 0"
        finally:
            for pid in processes_of(job_id):
                os.kill(pid, signal.SIGKILL)

    @pytest.mark.parametrize("shell", SHELLS)
    def test_processes_start_with_the_default_dispositions(
        self, hooks: Hooks, tmp_path: Path, shell: str
    ) -> None:
        """The launcher makes no process of the job ignore a signal."""
        status = Path("/proc/self/status")
        if not status.exists():
            pytest.skip("this machine has no /proc, which lists ignored signals")
        self.need_program()
        lines = self.new_lines(hooks, tmp_path, self.max_processes)

        done = lines.run(shell, "/bin/cat", str(status))

        # Python does not pass on the signals that it ignores itself
        own = {("SigIgn:", signal.SIGPIPE), ("SigIgn:", signal.SIGXFSZ)}
        found = done.stdout.decode()
        count = found.count("SigIgn:")
        added = ignored_signals(found) - (ignored_signals(status.read_text()) - own)
        names = ", ".join(sorted(signal.Signals(number).name for _, number in added))
        assert done.returncode == 0, f"the lines exited with {done.returncode}: {done.stderr!r}"
        assert count == self.max_processes, f"{count} of {self.max_processes} processes ran"
        assert not added, (
            f"the launcher starts processes that ignore or block {names}; what a shell starts in the "
            "background ignores INT and QUIT unless the lines of unignore_signals precede it"
        )


class LauncherConformance(LineTests, SignalTests, JobTests):
    """All conformance tests of a launcher; its test class inherits them and sets class attributes.

    class TestMpirun(LauncherConformance):
        launcher_name = "mpirun"
        program = "mpirun"
        max_processes = 3
    """
