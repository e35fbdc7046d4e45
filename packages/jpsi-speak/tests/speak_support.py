"""Programs that call the commands of a batch system for jobs of one queue."""

from __future__ import annotations

from pathlib import Path

import jpsi
from jpsi.plugin import CommandResult
from jpsi_speak.job_queue import JobQueue
from jpsi_testing.fake import Invocation, Speaker


class Programs:
    """Programs that call commands of one queue, whose server can be killed."""

    def __init__(self, folder: Path, speaker: Speaker) -> None:
        self._speaker = speaker
        self._folder = folder / "queue"
        self._folder.mkdir(mode=0o700)
        self.directory = folder
        self.calls = 0
        self.start()

    def start(self) -> None:
        """Start a server; an earlier one does nothing more, as if it had been killed."""
        if self.calls:
            self.executor.set_job_status_callback(None)
            self.queue.close()
        self.executor = jpsi.JobExecutor("local")
        self.queue = JobQueue(self._folder, self.executor, self._speaker, is_local=True)

    def call(
        self, *argv: str, stdin: str = "", key: str | None = None, is_lenient: bool = False
    ) -> CommandResult:
        """Return the result of a command."""
        self.calls += 1
        call = Invocation(
            argv=argv,
            stdin=stdin,
            environment={
                "PATH": "/usr/bin:/bin",
                "COLOUR": "red",
                "SLURM_JOB_ID": "999",
                "PBS_JOBID": "999.x",
            },
            directory=str(self.directory),
            zone=None,
        )
        return self.queue.answer(key or str(self.calls), call, is_lenient=is_lenient)

    def run(self, *argv: str, stdin: str = "") -> str:
        """Return the output of a command that succeeds."""
        result = self.call(*argv, stdin=stdin)
        assert (result.returncode, result.stderr) == (0, ""), result
        return result.stdout

    def wait(self) -> None:
        """Wait until no job runs, or will."""
        with self.queue._changed:
            assert self.queue._changed.wait_for(lambda: not self.queue.is_busy, 60)
