"""The course of a round: a batch system, a few jobs, clients that are killed, one fault, and the verdict."""

from __future__ import annotations

import abc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from chaos import proofs
from chaos.referee import Finding, ForeignJobFacts, Kind, Verdict, judge

#: The time that a round may take after its fault is over, in seconds, on a busy machine too.
PATIENCE = 45.0
# The number of attempts to remove the files of a round.
_REMOVE_ATTEMPTS = 6
# In seconds: short, so that rounds are short. A fault lasts longer than the grace period.
GRACE = 0.6
SECONDS = {
    "kill_delay": 0.5,
    "command_timeout": 2.5,
    "shortest_interval": 0.05,
    "longest_interval": 0.25,
    "grace": GRACE,
}


@dataclass(frozen=True)
class Trial:
    """The values that identify a round, and repeat it."""

    seed: int
    system: str
    fault: str
    number: int

    def __str__(self) -> str:
        return f"{self.system}:{self.fault}:{self.number}"

    @property
    def rng(self) -> random.Random:
        """The source of every random choice in the round."""
        return random.Random(f"{self.seed}/{self}")  # noqa: S311  to be repeated, not to be safe


@dataclass(frozen=True)
class Result:
    """The result of a round."""

    trial: Trial
    verdict: Verdict = field(default_factory=lambda: Verdict(0))
    #: Its duration, in seconds.
    seconds: float = 0.0
    #: The directory with its files, if something is wrong.
    folder: str | None = None
    #: Why the round was skipped.
    skipped: str = ""
    #: The traceback of an error in the trial itself.
    error: str = ""


class Skipped(Exception):
    """The error of a round that cannot run on this host."""


class Clients:
    """The client programs of one round."""

    def __init__(self, folder: Path, command: Sequence[str], environment: dict[str, str]) -> None:
        self._folder = folder
        self._command = [*command, "-m", "chaos.client", str(folder)]
        self._environment = environment
        self._running: list[subprocess.Popen[bytes]] = []
        self.started = 0

    def start(self, *, is_follower: bool = False) -> subprocess.Popen[bytes]:
        """Start another client beside those that run; a follower submits no jobs of its own."""
        self.started += 1
        name = f"{'follower' if is_follower else 'client'}{self.started}"
        with (self._folder / f"{name}.out").open("wb") as out:
            client = subprocess.Popen(
                [*self._command, name],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
                start_new_session=True,
            )
        self._running.append(client)
        return client

    def kill(self) -> None:
        """Kill all running clients with -9, without their child processes."""
        for client in self._running:
            client.kill()
            client.wait()
        self._running.clear()

    def wait_for_exit(self, seconds: float) -> bool:
        """Wait until a client has come to its end; return False if that takes longer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._running = [it for it in self._running if it.poll() is None] or self._running[:1]
            if not self._running or any(it.poll() is not None for it in self._running):
                break
            time.sleep(0.02)
        else:
            return False
        return True

    @property
    def is_any_running(self) -> bool:
        """True if a client runs."""
        return any(it.poll() is None for it in self._running)

    def show_stacks(self) -> None:
        """Let running clients write the stacks of their threads."""
        for client in self._running:
            if client.poll() is None:
                client.send_signal(signal.SIGUSR1)
                time.sleep(0.3)


@dataclass(frozen=True)
class Client:
    """The description of a batch system for a client."""

    executor: str
    config_class: str
    config: Mapping[str, Any]
    #: Durations of the configuration, in seconds.
    seconds: Mapping[str, float]
    #: Further directories on its PYTHONPATH.
    paths: Sequence[Path] = ()


class Round(abc.ABC):
    """A round, as its fault uses it; a subclass has a batch system."""

    #: The time that a round may take after the fault is over, in seconds.
    timeout_seconds = PATIENCE

    def __init__(self, trial: Trial, folder: Path, client: Client) -> None:
        self.trial = trial
        self.rng = rng = trial.rng
        self.folder = folder
        self.count = rng.randint(2, 5)
        #: The plan that clients read; a fault may change it before the first client starts.
        self.plan: dict[str, Any] = {
            "executor": client.executor,
            "config_class": client.config_class,
            "config": dict(client.config),
            "seconds": dict(client.seconds),
            "at once": self.chance(0.4),
            "cancels": {},
            "tricks": {},
            "name": "c",
            "work": str(folder / "work"),
            "jobs": [self.job(key, rng.choice([0.0, 0.1, 0.4, 0.9])) for key in range(self.count)],
        }
        self.environment = self._environment(client.paths)
        self.clients = Clients(folder, [sys.executable], self.environment)
        self._undo: list[Callable[[], object]] = []
        self._last: list[Callable[[], object]] = []

    def job(self, key: int, seconds: float) -> dict[str, Any]:
        """Return the plan of a job."""
        words = [
            "/bin/sh",
            "-c",
            proofs.JOB,
            "sh",
            key,
            proofs.exit_code_of(key),
            seconds,
            self.folder / "proof",
        ]
        return {"words": [str(word) for word in words], "options": {}}

    def _environment(self, paths: Sequence[Path]) -> dict[str, str]:
        directories = [str(Path(__file__).parent.parent), *map(str, paths)]
        homes = {f"XDG_{kind}_HOME": str(self.folder / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
        return {**kept, **homes, "PYTHONPATH": os.pathsep.join(directories)}

    # The batch system, which a subclass knows.

    @abc.abstractmethod
    def has_submitted(self, count: int) -> bool:
        """Return True if the batch system has so many jobs."""

    @abc.abstractmethod
    def are_all_final(self) -> bool:
        """Return True if all jobs of the round that the batch system knows have ended."""

    @abc.abstractmethod
    def release_held_jobs(self) -> None:
        """Release jobs that the batch system holds until their owner releases them."""

    @abc.abstractmethod
    def repair(self) -> None:
        """Repair the batch system."""

    @abc.abstractmethod
    def foreign_job_facts(self) -> list[ForeignJobFacts]:
        """Return the facts about foreign jobs."""

    # For faults.

    def note(self, what: str, key: int | None = None, **more: Any) -> None:
        """Record an act of the trial."""
        proofs.note(self.folder, what, key, **more)

    def start(self, *, is_follower: bool = False) -> None:
        """Start a client."""
        (self.folder / "plan").write_text(json.dumps(self.plan))
        self.clients.start(is_follower=is_follower)

    def kill(self, *, is_restarted: bool = True) -> None:
        """Kill the clients at a random moment of the last one's work, and start another."""
        up = self.clients.started
        self.wait_until(
            lambda: (
                sum(it["what"] == "up" for it in proofs.notes(self.folder)) >= up
                or not self.clients.is_any_running
            )
        )
        self.pause(0.0, self.rng.choice([0.02, 0.2, 0.8]))
        self.clients.kill()
        self.note("client killed")
        if is_restarted:
            self.start()

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < probability

    @staticmethod
    def skip(why: str) -> NoReturn:
        """Skip the round, as this fault cannot be tried on this machine."""
        raise Skipped(why)

    def pause(self, least: float, most: float) -> None:
        """Let some time pass."""
        time.sleep(self.rng.uniform(least, most))

    def wait_until(self, condition: Callable[[], object], seconds: float = 10.0) -> bool:
        """Wait until a condition is true; return False after the timeout, which faults tolerate."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def wait_for_submissions(self, count: int = 1) -> bool:
        """Wait until the batch system has so many jobs."""
        return self.wait_until(lambda: self.has_submitted(count))

    def plan_cancels(self, probability: float = 0.3, least: float = 0.2, most: float = 1.5) -> None:
        """Plan cancels of some jobs, at random moments after the start of a client, in seconds."""
        for key in range(self.count):
            if self.chance(probability):
                self.plan["cancels"][str(key)] = self.rng.uniform(least, most)

    def seconds(self, least: float, most: float) -> None:
        """Give every job a random duration between these, in seconds."""
        for key in range(self.count):
            self.plan["jobs"][key] = self.job(key, self.rng.uniform(least, most))

    def at_end_of_fault(self, call: Callable[[], object]) -> None:
        """Call a function when the fault is over, even if the trial fails."""
        self._undo.append(call)

    def at_end_of_round(self, call: Callable[[], object]) -> None:
        """Call a function when the round is over."""
        self._last.append(call)

    # The course of a round.

    def run(self, fault: Callable[[Any], None]) -> Verdict:
        """Run the fault, repair the batch system, wait for all ends, and return the verdict."""
        try:
            try:
                fault(self)
            finally:
                for call in reversed(self._undo):
                    call()
                self.repair()
                self.note("repaired")
            self._wait_for_ends()
        finally:
            self.clients.kill()
            for call in reversed(self._last):
                call()
        return self._verdict()

    def _wait_for_ends(self) -> None:
        """Wait until a client has reported all ends."""
        if not self.clients.is_any_running:
            self.start()
        if not self.wait_until(self._have_clients_exited, self.timeout_seconds):
            self.clients.show_stacks()
        # wait for running jobs, which may prove that they have run twice
        self.wait_until(self.are_all_final, self.timeout_seconds)

    def _have_clients_exited(self) -> bool:
        self.release_held_jobs()
        return self.clients.wait_for_exit(1.0)

    def _verdict(self) -> Verdict:
        jobs = list(proofs.facts(self.folder, self.count))
        verdict = judge(jobs, self.foreign_job_facts())
        unsubmitted = [it for it in jobs if not it.is_begun]
        more = [
            Finding(Kind.STUCK, f"job {it.key}", "no client submitted it", truth=it.truth)
            for it in unsubmitted
        ]
        errors = {it["why"] for it in proofs.notes(self.folder) if it["what"] == "error"}
        more += [
            Finding(Kind.STUCK, "client", "it failed", why, "the system was repaired")
            for why in sorted(errors)
        ]
        return Verdict(verdict.jobs, [*verdict.findings, *more])


def play(trial: Trial, play_in: Callable[[Trial, Path], Verdict], keep: Path, *, keeps_files: bool) -> Result:
    """Play a round; keep its files if something is wrong, or always.

    Args:
        trial: the round.
        play_in: plays it in a directory of its own.
        keep: the directory for kept files.
        keeps_files: True if its files are always kept.
    """
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="jpsi-chaos-"))
    verdict, error = Verdict(0), ""
    try:
        verdict = play_in(trial, folder)
    except Skipped as e:
        shutil.rmtree(folder, ignore_errors=True)
        return Result(trial, skipped=str(e))
    except Exception:  # noqa: BLE001  report a trial that fails, and go on with the others
        error = traceback.format_exc()
    kept = None
    if verdict.findings or error or keeps_files:
        (folder / "report").write_text("\n".join([*map(str, verdict.findings), error]) + "\n")
        kept = _keep_files(folder, keep / str(trial).replace(":", "-"))
    if kept != str(folder):
        _remove(folder)
    return Result(trial, verdict, time.monotonic() - begun, kept, error=error)


def _remove(folder: Path) -> None:
    """Remove the files of a round, with retries, as jobs that are being killed may still write."""
    for _ in range(_REMOVE_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.5)


def _keep_files(folder: Path, target: Path) -> str:
    """Keep the files of a round; return their directory."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target, symlinks=True, ignore_dangling_symlinks=True)
    except (OSError, shutil.Error):
        return str(folder)
    return str(target)
