"""Tests of signals: one that ends a launcher ends its processes, which start with default dispositions."""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path

import pytest

from jpsi_testing.conformance.hook_caller import Hooks
from jpsi_testing.conformance.launcher_base import SHELLS, LauncherTestBase, ignored_signals, processes_of

# A process that reports its start, and stays.
_STAY_ALIVE = 'echo >"$1/$$"; exec sleep 1000'


class SignalTests(LauncherTestBase):
    """Tests for batch systems that signal only the job's first process."""

    @pytest.mark.parametrize("shell", SHELLS)
    def test_term_leaves_no_process_behind(self, hooks: Hooks, tmp_path: Path, shell: str) -> None:
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
                lambda: len(list(started_files.iterdir())) == self.max_processes, "every process runs"
            )

            os.kill(process.pid, signal.SIGTERM)
            code = process.wait(self.timeout_seconds)

            self.wait_until(lambda: processes_of(job_id) == [], "nothing is left")
            assert code != 0
        finally:
            for pid in processes_of(job_id):
                os.kill(pid, signal.SIGKILL)

    @pytest.mark.parametrize("shell", SHELLS)
    def test_processes_start_with_the_default_dispositions(
        self, hooks: Hooks, tmp_path: Path, shell: str
    ) -> None:
        status = Path("/proc/self/status")
        if not status.exists():
            pytest.skip("this machine has no /proc, which lists ignored signals")
        self.need_program()
        lines = self.new_lines(hooks, tmp_path, self.max_processes)

        done = lines.run(shell, "/bin/cat", str(status))

        # Python does not pass on the signals that it ignores itself
        own = {("SigIgn:", signal.SIGPIPE), ("SigIgn:", signal.SIGXFSZ)}
        assert done.returncode == 0
        assert done.stdout.count(b"SigIgn:") == self.max_processes
        assert ignored_signals(done.stdout.decode()) <= ignored_signals(status.read_text()) - own
