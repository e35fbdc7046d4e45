"""Rounds on the fakes, and their faults: each fault starts the client, and makes something happen."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from chaos import faults, proofs
from chaos.referee import ForeignJobFacts, Verdict
from chaos.rounds import GRACE, SECONDS, Client, Round, Trial
from chaos.systems import SYSTEMS, GarblingFake, toy_plugin
from chaos.tampering import garblings
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, on_path

_FOREIGN_SCRIPTS = ("exit 0", "exit 3", "sleep 300 & wait $!", "sleep 0.3; exit 0")
# The seconds by which a restart of the controller takes longer on its own clock than in real time.
_RESTART_SECONDS = (1.5, 5.0)


class FakeRound(Round):
    """A round on a fake."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        self.system = SYSTEMS[trial.system]
        paths = [toy_plugin(folder / "plugins")]
        client = Client(trial.system, self.system.config_class, self.system.config, SECONDS, paths)
        super().__init__(trial, folder, client)
        self.scheduler = FakeScheduler(
            slots=self.rng.choice([1, 2, 4, 8]),
            keep=self.rng.choice([0.0, 0.3, 300.0, 300.0]),
            accounting=self.chance(0.8),
            kill_delay=0.5,
        )
        self.garbling_fake = GarblingFake(self.system)
        self.foreign_jobs: list[FakeJob] = []

    def has_submitted(self, count: int) -> bool:
        """See `Round`."""
        return len(self.scheduler.jobs) >= count

    def release_held_jobs(self) -> None:
        """See `Round`; a fake holds no job by itself."""

    def are_all_final(self) -> bool:
        """See `Round`."""
        return all(job.state.final for _, job in self.own_jobs())

    def repair(self) -> None:
        """See `Round`."""
        self.garbling_fake.garble = None
        self.scheduler.faults.clear()
        self._end_hanging()
        self.scheduler.lag = 0.0
        self.scheduler.slots = max(self.scheduler.slots, 2)
        self.scheduler.settle()

    def _end_hanging(self) -> None:
        """End commands that hang, as real ones end at last; their callers may be gone."""
        commands, _, _ = os.environ["PATH"].partition(os.pathsep)
        socket = os.fsencode(Path(commands).parent)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if socket in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGTERM)

    def foreign_job_facts(self) -> list[ForeignJobFacts]:
        """See `Round`."""
        return [ForeignJobFacts(it.native_id, _effect_of_command(it)) for it in self.foreign_jobs]

    def own_jobs(self) -> list[tuple[int, FakeJob]]:
        """Return the jobs that the batch system has, with their keys if these are known."""
        reported = {
            it["native_id"]: it["key"] for it in proofs.notes(self.folder) if it["what"] == "submitted"
        }
        found = []
        for job in self.scheduler.jobs:
            name = job.name[-1] if job.name[:-1] == self.plan["name"] and job.name[-1].isdigit() else None
            key = reported.get(job.native_id, None if name is None else int(name))
            if key is not None and job not in self.foreign_jobs:
                found.append((key, job))
        return found

    @contextlib.contextmanager
    def restarting(self) -> Iterator[None]:
        """Kill the controller, which comes back after the block; meanwhile no command reaches it.

        Commands that were sent before do not arrive after the restart either. On the controller's own clock
        the restart takes longer than in real time.
        """
        self.scheduler.faults.down()
        self.pause(0.8, 1.5)
        clock, seconds = self.scheduler.clock, self.rng.uniform(*_RESTART_SECONDS)
        self.scheduler.clock = lambda: clock() + seconds
        yield
        self.scheduler.faults.up()

    def reuse_native_id(self, key: int, job: FakeJob, script: str) -> None:
        """Let the batch system forget a job, and give its native id to a foreign job."""
        with self.scheduler.lock:
            self._forget(key, job)
            number = len(self.foreign_jobs)
            text = proofs.FOREIGN_SCRIPT.format(number=number, proof=self.folder / "proof", command=script)
            self.foreign_jobs.append(self.scheduler.reuse_native_id(job.native_id, text))

    def vanish(self, key: int, job: FakeJob) -> None:
        """Let the batch system forget a job."""
        with self.scheduler.lock:
            self._forget(key, job)
            self.scheduler.vanish(job.native_id)

    def _forget(self, key: int, job: FakeJob) -> None:
        self.note("forgotten", key)
        if job.state is FakeState.RUNNING:
            self.note("killed", key)


def _effect_of_command(foreign_job: FakeJob) -> str:
    """Return the effect on a foreign job that only a command can have had."""
    ended = {FakeState.CANCELLED: "cancelled", FakeState.HELD: "held"}
    return ended.get(foreign_job.state) or ended.get(foreign_job.ending or FakeState.PENDING, "")


def controller(round_: FakeRound) -> None:
    """Lose and restart the controller: it forgets jobs, and reuses their native ids for other users' jobs."""
    rng = round_.rng
    round_.scheduler.slots = rng.choice([0, 1, 8])
    round_.seconds(0.3, 1.5)
    round_.plan_cancels(0.3)
    round_.start()
    if round_.chance(0.5):
        round_.wait_for_submissions(rng.randint(1, round_.count))
    else:
        round_.wait_until(lambda: any(it["what"] == "submitted" for it in proofs.notes(round_.folder)))
        round_.pause(0.0, 0.4)
    if is_killed := round_.chance(0.4):
        round_.kill(is_restarted=False)
    with round_.restarting():
        for key, job in round_.own_jobs():
            if round_.chance(0.6):
                if round_.chance(0.8):
                    round_.reuse_native_id(key, job, rng.choice(_FOREIGN_SCRIPTS))
                else:
                    round_.vanish(key, job)
    round_.scheduler.slots = 8
    round_.scheduler.settle()
    if is_killed:
        round_.start()


def restored(round_: FakeRound) -> None:
    """Restart the controller from an old state: it runs jobs again that have ended since."""
    round_.scheduler.keep, round_.scheduler.accounting = 300.0, True
    round_.start()
    round_.wait_until(lambda: any(job.state.final for _, job in round_.own_jobs()))
    # Before the client knows after which exit codes the site requeues jobs, any failed job may run again.
    round_.wait_until(lambda: list((round_.folder / "work").glob("*/requeue.json")))
    round_.pause(0.0, 0.8)
    if is_killed := round_.chance(0.3):
        round_.clients.kill()
    with round_.restarting():
        for key, job in round_.own_jobs():
            if job.state.final and round_.chance(0.7):
                round_.note("restored", key)
                round_.scheduler.restore(job.native_id, is_counted=round_.chance(0.5))
    if is_killed:
        round_.start()


def _pause_beyond_grace(round_: FakeRound) -> None:
    round_.pause(1.5 * GRACE, 3.5 * GRACE)


def garbled(round_: FakeRound) -> None:
    """Let status commands exit 0 and print garbage, for longer than the grace period."""
    rng = round_.rng
    round_.seconds(0.3, 1.8)
    round_.scheduler.slots = rng.choice([1, 2, 8])
    round_.plan_cancels(0.1)
    kinds = garblings(rng)
    name = rng.choice(sorted(kinds))
    round_.note("tampered", how=name)
    is_at_once = round_.chance(0.3)
    if is_at_once:
        round_.garbling_fake.garble = kinds[name]
    round_.start()
    if not is_at_once:
        round_.wait_for_submissions()
        round_.pause(0.0, 0.6)
        round_.garbling_fake.garble = kinds[name]
    _pause_beyond_grace(round_)
    if round_.chance(0.3):
        round_.kill()
        _pause_beyond_grace(round_)


def hanging(round_: FakeRound) -> None:
    """Let commands hang or fail, or the whole batch system, for longer than the grace period."""
    rng, faults = round_.rng, round_.scheduler.faults
    round_.seconds(0.3, 1.5)
    round_.plan_cancels(0.2)
    round_.start()
    if round_.chance(0.7):
        round_.wait_for_submissions(rng.randint(1, round_.count))
    match rng.choice(["down", "down and hangs", "hang", "fail", "cut"]):
        case "down":
            faults.down()
        case "down and hangs":
            faults.down(hangs=True)
        case "hang":
            for name in round_.system.commands():
                faults.hang(name, times=2)
        case "fail":
            faults.fail("*", times=rng.randint(2, 12))
        case "cut":
            for name in round_.system.commands():
                faults.cut(name, times=rng.randint(2, 12))
    _pause_beyond_grace(round_)
    if round_.chance(0.3):
        round_.kill()


def unclear(round_: FakeRound) -> None:
    """Accept submissions without an answer, or with a part of one, and show new jobs late."""
    rng, scheduler = round_.rng, round_.scheduler
    scheduler.lag = rng.choice([0.0, 0.3, 0.45])
    scheduler.slots = rng.choice([0, 2, 8])
    for _ in range(rng.randint(1, 2)):
        getattr(scheduler.faults, rng.choice(["accept_and_hang", "cut"]))(round_.system.submit)
    if round_.chance(0.5):
        for name in round_.system.commands():
            if name != round_.system.submit:
                scheduler.faults.fail(name, times=rng.randint(1, 5))
    round_.start()
    round_.wait_for_submissions()
    round_.pause(0.0, 2.0)
    if round_.chance(0.4):
        round_.kill()


def requeue(round_: FakeRound) -> None:
    """Requeue jobs, as if a user had requested it."""
    rng = round_.rng
    round_.seconds(0.3, 1.2)
    round_.start()
    for _ in range(rng.randint(1, 3)):
        round_.pause(0.1, 0.6)
        with round_.scheduler.lock:
            running = [(key, job) for key, job in round_.own_jobs() if job.state is FakeState.RUNNING]
            if running:
                key, job = rng.choice(running)
                round_.note("rerun", key)
                round_.scheduler.requeue(job.native_id, delay=rng.choice([0.0, 0.5, 2 * GRACE]))
        if round_.chance(0.3):
            round_.kill()


def _mount_work_directory(round_: FakeRound) -> Path:
    """Mount a file system for the work directory, and return its path."""
    work = round_.folder / "work"
    if os.geteuid() != 0:
        round_.skip("a mount requires root")
    work.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700,nr_inodes=2000", "chaos", str(work)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        round_.skip("this machine permits no mount")
    round_.at_end_of_round(lambda: _unmount(round_, work))
    return work


def _unmount(round_: FakeRound, work: Path) -> None:
    # keep the files for a person who investigates the round
    subprocess.run(["cp", "-a", str(work), str(round_.folder / "work-was")], check=False)
    subprocess.run(["umount", "--lazy", str(work)], check=False)


def readonly(round_: FakeRound) -> None:
    """Make the file system of the work directory read-only while jobs run, and writable again later."""
    work = _mount_work_directory(round_)
    round_.scheduler.keep, round_.scheduler.accounting = 300.0, True
    round_.seconds(0.2, 1.2)
    round_.start()
    round_.wait_for_submissions()
    round_.pause(0.0, 0.5)

    round_.note("unwritable")
    # by another mount, as a file system with open files cannot be remounted read-only as a whole
    other = round_.folder / "readonly"
    other.mkdir()
    steps = (["--bind", work, other], ["-o", "remount,bind,ro", other], ["--bind", other, work])
    for step in steps:
        subprocess.run(["mount", *map(str, step)], capture_output=True, check=True)
    for path in (other, work):
        round_.at_end_of_fault(functools.partial(subprocess.run, ["umount", "--lazy", str(path)], check=True))
    round_.pause(0.3, 2.5)
    if round_.chance(0.3):
        round_.kill()
        round_.pause(0.3, 1.0)


def full(round_: FakeRound) -> None:
    """Fill the disk of the work directory for a while."""
    work = _mount_work_directory(round_)
    round_.scheduler.keep, round_.scheduler.accounting = 300.0, True
    round_.seconds(0.2, 1.2)
    round_.start()
    round_.wait_for_submissions(round_.rng.choice([0, 1]))
    round_.pause(0.0, 0.5)
    fill = work / "fill"
    fill.mkdir()

    def empty() -> None:
        for path in fill.iterdir():
            path.unlink()

    round_.at_end_of_fault(empty)
    round_.note("unwritable")
    with contextlib.suppress(OSError):
        if round_.chance(0.5):
            for number in range(5000):
                (fill / str(number)).touch()
        else:
            with (fill / "large").open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
    round_.pause(0.3, 2.0)
    if round_.chance(0.3):
        round_.kill()
        round_.pause(0.3, 1.0)


#: The faults by name.
FAULTS: Mapping[str, Callable[[FakeRound], None]] = {
    **faults.FAULTS,
    **{it.__name__: it for it in (controller, restored, garbled, hanging, unclear, requeue, readonly, full)},
}


def play(trial: Trial, folder: Path) -> Verdict:
    """Play a round on a fake."""
    round_ = FakeRound(trial, folder)
    with round_.scheduler, on_path(round_.garbling_fake, round_.scheduler):
        round_.environment["PATH"] = os.environ["PATH"]
        return round_.run(FAULTS[trial.fault])
