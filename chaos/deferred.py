"""Rounds of deferred submissions, on the command line: everything that takes part in them is killed.

Each job waits for an earlier one, which mostly belongs to another system, so that a process of jpsi waits and
submits then. `jpsi submit`, `jpsi wait` and that process are killed with -9 at random moments; jobs are held
and released meanwhile. At the end one undisturbed `jpsi wait` has to bring all jobs to their ends.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from chaos import fakes, proofs
from chaos.referee import Finding, JobFacts, Kind, ReportedStatus, Verdict, judge
from chaos.rounds import Trial
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob
from jpsi_testing.fake import on_path

# How often a user submits a job again whose `jpsi submit` was killed.
_MOST_SUBMISSIONS = 5
_COMMAND_SECONDS = 60.0
# How long a job that ends soon may keep the next one from being submitted.
_SUBMISSION_SECONDS = 5.0
_DISTURBANCES = (
    *("process", "submitting process", "submitting process"),
    *("wait", "wait", "kill wait", "hold", "release"),
)


class DeferredRound(fakes.FakeRound):
    """A round on a fake and on this machine."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        super().__init__(trial, folder)
        self.scheduler.keep, self.scheduler.accounting = 300.0, True
        #: By job, the job that it waits for.
        self.parents = {
            key: self.rng.choice([key - 1, self.rng.randrange(key)]) for key in range(1, self.count)
        }
        self._waits: list[subprocess.Popen[bytes]] = []
        self._held: set[int] = set()
        self._last_error = ""
        config = {
            "executors": {
                trial.system: {"config": {**self.plan["seconds"], **self.plan["config"]}},
                "local": {"config": {"kill_delay": self.plan["seconds"]["kill_delay"]}},
            }
        }
        file = folder / "config" / "jpsi" / "config.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(config))

    def jpsi(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command."""
        name = f"{len(list(self.folder.glob('*.err')))}-{arguments[0]}"
        with (self.folder / f"{name}.err").open("wb") as err, (self.folder / f"{name}.out").open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "jpsi_cli", *arguments],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def stored(self, key: int) -> list[StoredJob]:
        """Return the records of a job, without those that can never run."""
        found = job_store.jobs(also=[self.folder / "state" / "jpsi" / "work"])
        own = [it for it in found if it.name == f"c{key}" and it.folder.is_relative_to(self.folder)]
        return [it for it in own if not it.is_unsent or it.deferral is not None]

    def submit(self, key: int) -> None:
        """Submit a job; if `jpsi submit` is killed, look what became of the job, and repeat it if needed."""
        parent = self.parents.get(key)
        after = [] if parent is None else ["--after", f"any:{self.stored(parent)[0].id}"]
        executor = self.rng.choice(["local", self.trial.system])
        words = self.plan["jobs"][key]["words"]
        for number in range(_MOST_SUBMISSIONS):
            command = self.jpsi("submit", "-x", executor, "--name", f"c{key}", *after, "--", *words)
            self.note("begun", key)
            if number + 1 < _MOST_SUBMISSIONS and self.chance(0.4):
                self.pause(0.0, 1.5)
                command.kill()
            command.wait(_COMMAND_SECONDS)
            while (found := self.stored(key)) and found[0].native_id is None and found[0].deferral is None:
                if found[0].status.final or found[0].unclear_deferral is not None:
                    break
                # whether it was submitted is not known yet
                self.jpsi("wait", "--timeout", "0", found[0].id).wait(_COMMAND_SECONDS)
            if found:
                return

    def kill_waiting_processes(self) -> None:
        """Kill the processes that wait to submit jobs."""
        for file in (self.folder / "state").glob("jpsi/work/**/deferred/*.process"):
            pid = re.search(r"process (\d+) on", file.read_text())
            if pid is None:
                continue
            command = Path(f"/proc/{pid[1]}/cmdline")
            # the process may have ended, and another may have its number
            if command.exists() and file.stem.encode() in command.read_bytes():
                os.kill(int(pid[1]), signal.SIGKILL)
                self.note("killed waiting process", pid=pid[1])

    def kill_submitting_process(self) -> None:
        """Kill a process as it submits a deferred job, with or without effect on the batch system."""
        if not any(it.deferral is not None for key in range(self.count) for it in self.stored(key)):
            return
        faults, submit = self.scheduler.faults, self.system.submit
        self.rng.choice([faults.hang, faults.accept_and_hang, lambda _: None])(submit)
        seen = self._later_attempts()
        if self.wait_until(lambda: self._later_attempts() > seen, _SUBMISSION_SECONDS):
            self.pause(0.0, self.rng.choice([0.0, 0.05, 0.3]))
            self.kill_waiting_processes()

    def _later_attempts(self) -> int:
        """Return the number of attempts to submit jobs that were deferred; the first ones recorded them."""
        work = self.folder / "state" / "jpsi" / "work"
        return sum(1 for _ in work.glob("**/intent.[2-9].json"))

    def disturb(self) -> None:
        """Kill, hold or start something."""
        key = self.rng.randrange(self.count)
        match self.rng.choice(_DISTURBANCES):
            case "process":
                self.kill_waiting_processes()
            case "submitting process":
                self.kill_submitting_process()
            case "wait":
                self._waits.append(self.jpsi("wait", *(it.id for it in self.stored(key))))
            case "kill wait" if self._waits:
                self.rng.choice(self._waits).kill()
            case "hold":
                self._held.add(key)
                self.control("hold", key)
            case "release":
                self.control("release", key)

    def control(self, command: str, key: int) -> None:
        """Hold or release a job; neither is possible for a job of `local` once it was submitted."""
        self.jpsi(command, *(it.id for it in self.stored(key))).wait(_COMMAND_SECONDS)

    def _wait_for_ends(self) -> None:
        for wait in self._waits:
            wait.kill()
            wait.wait()
        for key in self._held:
            self.control("release", key)
        ids = [it.id for key in range(self.count) for it in self.stored(key)]
        command = self.jpsi("wait", "--timeout", str(int(self.timeout_seconds)), *ids)
        code = command.wait(2 * _COMMAND_SECONDS)
        if code in {124, 125}:
            files = sorted(self.folder.glob("*-wait.err"), key=lambda it: int(it.name.partition("-")[0]))
            self._last_error = f"exit code {code}: {files[-1].read_text().strip()}"

    def _verdict(self) -> Verdict:
        acts = proofs.proofs(self.folder)
        facts, findings = list[JobFacts](), list[Finding]()
        for key in range(self.count):
            found = self.stored(key)
            reported = [
                ReportedStatus(
                    "disk",
                    it.status.state.name,
                    it.status.exit_code,
                    None if it.status.reason is None else it.status.reason.name,
                )
                for it in found
                if it.status.final
            ]
            facts.append(
                JobFacts(
                    key=key,
                    code=proofs.exit_code_of(key),
                    proof=[what for what, number in acts if number == key],
                    reported=reported,
                    is_on_disk=bool(found),
                )
            )
            if not found:
                findings.append(Finding(Kind.LOST, f"job {key}", "it is not on disk", truth=facts[-1].truth))
            parent = self.parents.get(key)
            if parent is not None and ("start", key) in acts:
                before = acts[: acts.index(("start", key))]
                if ("end", parent) not in before:
                    findings.append(
                        Finding(Kind.WRONG, f"job {key}", f"it ran before job {parent} had ended")
                    )
        if self._last_error:
            findings.append(Finding(Kind.STUCK, "jpsi wait", "it ended before the jobs", self._last_error))
        verdict = judge(facts)
        return Verdict(verdict.jobs, [*verdict.findings, *findings])


def deferred(round_: DeferredRound) -> None:
    """Kill what submits jobs once other jobs have ended, and what waits for that."""
    round_.seconds(0.2, 1.5)
    # it runs until the others wait for it, mostly
    round_.plan["jobs"][0] = round_.job(0, 2.0 * round_.count)
    for key in range(round_.count):
        round_.submit(key)
        if round_.chance(0.3):
            round_.kill_waiting_processes()
    for _ in range(round_.rng.randint(2, 8)):
        round_.disturb()
        round_.pause(0.0, 0.5)
    round_.kill_submitting_process()


#: The faults by name.
FAULTS = {"deferred": deferred}


def play(trial: Trial, folder: Path) -> Verdict:
    """Play a round on a fake and on this machine."""
    round_ = DeferredRound(trial, folder)
    with round_.scheduler, on_path(round_.garbling_fake, round_.scheduler):
        round_.environment["PATH"] = os.environ["PATH"]
        return round_.run(FAULTS[trial.fault])
