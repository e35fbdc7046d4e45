"""One round on a fake: a batch system, a few jobs, clients that are killed, one fault; what came of it."""

from __future__ import annotations

import contextlib
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from chaos import proofs
from chaos.referee import Finding, Kind, StrangerFacts, Verdict, judge
from chaos.systems import SYSTEMS, Tampered, toy_plugin
from jpsi.fakes import FakeJob, FakeScheduler, FakeState, on_path

#: How long all of a round may take after its fault is over, in seconds, however busy the machine is.
PATIENCE = 45.0
# In seconds: short, so that rounds are. What a fault does lasts longer than the grace period.
GRACE = 0.6
_SECONDS = {
    "kill_delay": 0.5,
    "command_timeout": 2.5,
    "shortest_interval": 0.05,
    "longest_interval": 0.25,
    "grace": GRACE,
}


@dataclass(frozen=True)
class Trial:
    """Which round it is: enough to repeat it."""

    seed: int
    system: str
    fault: str
    number: int

    def __str__(self) -> str:
        return f"{self.system}:{self.fault}:{self.number}"

    @property
    def rng(self) -> random.Random:
        """What decides about everything in the round."""
        return random.Random(f"{self.seed}/{self}")  # noqa: S311  to be repeated, not to be safe


@dataclass(frozen=True)
class Result:
    """What came of a round."""

    trial: Trial
    verdict: Verdict = field(default_factory=lambda: Verdict(0))
    #: How long it took.
    seconds: float = 0.0
    #: Where its files are, if something is wrong.
    folder: str | None = None
    #: Why the round did not take place.
    skipped: str = ""
    #: What went wrong with the trial itself.
    error: str = ""


class Skipped(Exception):
    """This round cannot take place here."""


class Clients:
    """The client programs of one round."""

    def __init__(self, folder: Path, command: Sequence[str], environment: dict[str, str]) -> None:
        self._folder = folder
        self._command = [*command, "-m", "chaos.client", str(folder)]
        self._environment = environment
        self._running: list[subprocess.Popen[bytes]] = []
        self.started = 0

    def start(self, *, is_follower: bool = False) -> subprocess.Popen[bytes]:
        """Start one more, beside those that run; a follower makes no jobs of its own."""
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
        """Kill all that run with -9, and no process that they have started."""
        for client in self._running:
            client.kill()
            client.wait()
        self._running.clear()

    def are_over(self, seconds: float) -> bool:
        """Wait until one is there that has come to its end; False if that takes longer."""
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
    def is_one_there(self) -> bool:
        """Whether one runs."""
        return any(it.poll() is None for it in self._running)

    def show_stacks(self) -> None:
        """Have those that run write down what they are doing."""
        for client in self._running:
            if client.poll() is None:
                client.send_signal(signal.SIGUSR1)
                time.sleep(0.3)


class Round:
    """One round, as its fault sees it."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        self.trial = trial
        self.rng = trial.rng
        self.folder = folder
        self.system = SYSTEMS[trial.system]
        rng = self.rng
        self.scheduler = FakeScheduler(
            slots=rng.choice([1, 2, 4, 8]),
            keep=rng.choice([0.0, 0.3, 300.0, 300.0]),
            accounting=self.chance(0.8),
            kill_delay=0.5,
        )
        self.tampered = Tampered(self.system)
        self.strangers: list[FakeJob] = []
        self.count = rng.randint(2, 5)
        #: What clients are told; a fault may change it before the first is started.
        self.plan: dict[str, Any] = {
            "executor": trial.system,
            "config_class": self.system.config_class,
            "config": dict(self.system.config),
            "seconds": dict(_SECONDS),
            "at once": self.chance(0.4),
            "cancels": {},
            "tricks": {},
            "jobs": [self._job(key, rng.choice([0.0, 0.1, 0.4, 0.9])) for key in range(self.count)],
        }
        self.clients = Clients(folder, [sys.executable], self._environment())
        self._undo: list[Callable[[], object]] = []
        self._last: list[Callable[[], object]] = []

    def _job(self, key: int, seconds: float) -> dict[str, Any]:
        words = ["/bin/sh", "-c", proofs.JOB, "sh", key, proofs.code_of(key), seconds, self.folder / "proof"]
        return {"words": [str(word) for word in words], "options": {}}

    def _environment(self) -> dict[str, str]:
        root = Path(__file__).parent.parent
        paths = [str(root), str(toy_plugin(self.folder / "plugins"))]
        homes = {f"XDG_{kind}_HOME": str(self.folder / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
        return {**kept, **homes, "PYTHONPATH": os.pathsep.join(paths)}

    # What faults do.

    def note(self, what: str, key: int | None = None, **more: Any) -> None:
        """Write down what the trial does."""
        proofs.note(self.folder, what, key, **more)

    def start(self, *, is_follower: bool = False) -> None:
        """Start a client."""
        (self.folder / "plan").write_text(json.dumps(self.plan))
        self.clients._environment["PATH"] = os.environ["PATH"]  # noqa: SLF001  the commands are on it by now
        self.clients.start(is_follower=is_follower)

    def kill(self, *, is_restarted: bool = True) -> None:
        """Kill the clients at a random moment of what the last one does, and start another."""
        up = self.clients.started
        self.until(
            lambda: (
                sum(it["what"] == "up" for it in proofs.notes(self.folder)) >= up
                or not self.clients.is_one_there
            )
        )
        self.pause(0.0, self.rng.choice([0.02, 0.2, 0.8]))
        self.clients.kill()
        self.note("client killed")
        if is_restarted:
            self.start()

    def chance(self, probability: float) -> bool:
        """Whether something is to be so this time."""
        return self.rng.random() < probability

    @staticmethod
    def skip(why: str) -> NoReturn:
        """Say that this fault cannot be tried here."""
        raise Skipped(why)

    def pause(self, least: float, most: float) -> None:
        """Let some time pass."""
        time.sleep(self.rng.uniform(least, most))

    def until(self, condition: Callable[[], object], seconds: float = 10.0) -> bool:
        """Wait until something is so; False if that takes longer, with which a fault can live."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def submitted(self, count: int = 1) -> bool:
        """Wait until the batch system has so many jobs."""
        return self.until(lambda: len(self.scheduler.jobs) >= count)

    def cancels(self, probability: float = 0.3) -> None:
        """Have clients cancel some jobs, at random moments after their start."""
        for key in range(self.count):
            if self.chance(probability):
                self.plan["cancels"][str(key)] = self.rng.uniform(0.2, 1.5)

    def seconds(self, least: float, most: float) -> None:
        """Have all jobs take between so many seconds."""
        for key in range(self.count):
            self.plan["jobs"][key] = self._job(key, self.rng.uniform(least, most))

    def ours(self) -> list[tuple[int, FakeJob]]:
        """The jobs that the batch system has, with their keys, as far as these can be known."""
        told = {it["native_id"]: it["key"] for it in proofs.notes(self.folder) if it["what"] == "submitted"}
        found = []
        for job in self.scheduler.jobs:
            name = job.name[1:] if job.name.startswith("c") and job.name[1:].isdigit() else None
            key = told.get(job.native_id, None if name is None else int(name))
            if key is not None and job not in self.strangers:
                found.append((key, job))
        return found

    def supplant(self, key: int, job: FakeJob, script: str) -> None:
        """Have the batch system forget a job and give its native id to somebody else's."""
        with self.scheduler.lock:
            self._forget(key, job)
            number = len(self.strangers)
            text = proofs.STRANGER.format(number=number, proof=self.folder / "proof", command=script)
            self.strangers.append(self.scheduler.supplant(job.native_id, text))

    def vanish(self, key: int, job: FakeJob) -> None:
        """Have the batch system forget a job."""
        with self.scheduler.lock:
            self._forget(key, job)
            self.scheduler.vanish(job.native_id)

    def _forget(self, key: int, job: FakeJob) -> None:
        self.note("forgotten", key)
        if job.state is FakeState.RUNNING:
            self.note("killed", key)

    def undo(self, call: Callable[[], object]) -> None:
        """Have something done when the fault is over, and if the trial fails, too."""
        self._undo.append(call)

    def last(self, call: Callable[[], object]) -> None:
        """Have something done when the round is over."""
        self._last.append(call)

    # The course of a round.

    def run(self, fault: Callable[[Round], None]) -> Verdict:
        """Do it all."""
        try:
            with self.scheduler, on_path(self.tampered, self.scheduler):
                try:
                    fault(self)
                finally:
                    self._mend()
                self._bring_to_its_end()
        finally:
            self.clients.kill()
            for call in reversed(self._last):
                call()
        return self._verdict()

    def _mend(self) -> None:
        """The fault is over."""
        for call in reversed(self._undo):
            call()
        self._undo.clear()
        self.tampered.tamper = None
        self.scheduler.faults.clear()
        self._end_hanging()
        self.scheduler.lag = 0.0
        self.scheduler.slots = max(self.scheduler.slots, 2)
        self.scheduler.settle()
        self.note("mended")

    def _end_hanging(self) -> None:
        """End commands that hang, as real ones do in the end; their callers may be gone."""
        commands, _, _ = os.environ["PATH"].partition(os.pathsep)
        socket = os.fsencode(Path(commands).parent)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if socket in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGTERM)

    def _bring_to_its_end(self) -> None:
        """Have a client tell all ends."""
        if not self.clients.is_one_there:
            self.start()
        if not self.clients.are_over(PATIENCE):
            self.clients.show_stacks()
        # what still runs may prove that it has run twice
        self.until(lambda: all(job.state.final for _, job in self.ours()), PATIENCE)

    def _verdict(self) -> Verdict:
        jobs = list(proofs.facts(self.folder, self.count))
        strangers = [StrangerFacts(it.native_id, self._reached(it)) for it in self.strangers]
        verdict = judge(jobs, strangers)
        unbegun = [it for it in jobs if not it.is_begun]
        more = [
            Finding(Kind.STUCK, f"job {it.key}", "no client came to submit it", truth=it.truth)
            for it in unbegun
        ]
        told = {it["why"] for it in proofs.notes(self.folder) if it["what"] == "error"}
        more += [
            Finding(Kind.STUCK, "client", "it broke down", why, "all was mended") for why in sorted(told)
        ]
        return Verdict(verdict.jobs, [*verdict.findings, *more])

    def _reached(self, stranger: FakeJob) -> str:
        """What only a command can have done to a stranger's job."""
        ended = {FakeState.CANCELLED: "cancelled", FakeState.HELD: "held"}
        return ended.get(stranger.state) or ended.get(stranger.ending or FakeState.PENDING, "")


def play(trial: Trial, faults: dict[str, Callable[[Round], None]], keep: Path, *, is_kept: bool) -> Result:
    """Play one round; its files are kept where something is wrong, or always."""
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="jpsi-chaos-"))
    verdict, error = Verdict(0), ""
    try:
        verdict = Round(trial, folder).run(faults[trial.fault])
    except Skipped as e:
        shutil.rmtree(folder, ignore_errors=True)
        return Result(trial, skipped=str(e))
    except Exception:  # noqa: BLE001  a trial that fails is told of, and is no other's end
        error = traceback.format_exc()
    kept = None
    if verdict.findings or error or is_kept:
        kept = str(keep / str(trial).replace(":", "-"))
        write_report(folder, verdict, error)
        keep.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept, symlinks=True, ignore_dangling_symlinks=True)
    shutil.rmtree(folder, ignore_errors=True)
    return Result(trial, verdict, time.monotonic() - begun, kept, error=error)


def write_report(folder: Path, verdict: Verdict, error: str) -> None:
    """Have what is wrong beside the files of a round."""
    (folder / "report").write_text("\n".join([*map(str, verdict.findings), error]) + "\n")
