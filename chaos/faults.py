"""What goes wrong in a round on a fake: each function starts the client, and has something happen to it."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from chaos import proofs
from chaos.rounds import GRACE, Round
from chaos.systems import tamperings
from jpsi.fakes import FakeState

_STRANGERS = ("exit 0", "exit 3", "sleep 300 & wait $!", "sleep 0.3; exit 0")


def nothing(round_: Round) -> None:
    """No fault at all: jobs run, arrays too, and some are cancelled."""
    round_.cancels()
    round_.start()


def client(round_: Round) -> None:
    """The client is killed with -9 at random moments, and started again; sometimes another follows, too."""
    round_.cancels(0.15)
    round_.start()
    for _ in range(round_.rng.randint(1, 4)):
        if round_.chance(0.2):
            round_.start(is_follower=True)
        round_.kill()


def cancel(round_: Round) -> None:
    """Jobs are cancelled at random moments, while clients are killed."""
    round_.seconds(0.2, 1.5)
    round_.cancels(0.8)
    round_.start()
    if round_.chance(0.5):
        round_.pause(0.3, 1.5)
        round_.kill()


def controller(round_: Round) -> None:
    """The controller is lost and started again: it forgets jobs, and gives their native ids to strangers."""
    rng = round_.rng
    round_.scheduler.slots = rng.choice([0, 1, 8])
    round_.seconds(0.3, 1.5)
    round_.cancels(0.3)
    round_.start()
    if round_.chance(0.5):
        round_.submitted(rng.randint(1, round_.count))
    else:
        round_.until(lambda: any(it["what"] == "submitted" for it in proofs.notes(round_.folder)))
        round_.pause(0.0, 0.4)
    if is_killed := round_.chance(0.4):
        round_.kill(is_restarted=False)
    for key, job in round_.ours():
        if round_.chance(0.6):
            if round_.chance(0.8):
                round_.supplant(key, job, rng.choice(_STRANGERS))
            else:
                round_.vanish(key, job)
    round_.scheduler.slots = 8
    round_.scheduler.settle()
    if is_killed:
        round_.start()


def restored(round_: Round) -> None:
    """The controller comes back with a state of some time ago: jobs that ended since are run again."""
    if not hasattr(round_.scheduler, "restore"):
        round_.skip("this fake cannot be restored")
    round_.scheduler.keep = 300.0
    round_.start()
    round_.submitted(round_.count)
    round_.pause(0.1, 0.8)
    with round_.scheduler.lock:
        for key, job in round_.ours():
            if job.state is FakeState.RUNNING:
                # cut short, it has not ended
                round_.note("rerun", key)
                round_.note("killed", key)
            if job.started is not None:
                round_.scheduler.restore(job.native_id)


def _for_longer_than_grace(round_: Round) -> None:
    round_.pause(1.5 * GRACE, 3.5 * GRACE)


def garbled(round_: Round) -> None:
    """Commands that tell about jobs exit 0 and print what is no answer, for longer than the grace period."""
    rng = round_.rng
    round_.seconds(0.3, 1.8)
    round_.scheduler.slots = rng.choice([1, 2, 8])
    round_.cancels(0.1)
    kinds = tamperings(rng)
    name = rng.choice(sorted(kinds))
    round_.note("tampered", how=name)
    is_at_once = round_.chance(0.3)
    if is_at_once:
        round_.tampered.tamper = kinds[name]
    round_.start()
    if not is_at_once:
        round_.submitted()
        round_.pause(0.0, 0.6)
        round_.tampered.tamper = kinds[name]
    _for_longer_than_grace(round_)
    if round_.chance(0.3):
        round_.kill()
        _for_longer_than_grace(round_)


def hanging(round_: Round) -> None:
    """Commands hang, or fail, or the whole batch system does, for longer than the grace period."""
    rng, faults = round_.rng, round_.scheduler.faults
    round_.seconds(0.3, 1.5)
    round_.cancels(0.2)
    round_.start()
    if round_.chance(0.7):
        round_.submitted(rng.randint(1, round_.count))
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
    _for_longer_than_grace(round_)
    if round_.chance(0.3):
        round_.kill()


def unclear(round_: Round) -> None:
    """Submissions are accepted and say nothing, or not all; new jobs do not show at once."""
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
    round_.submitted()
    round_.pause(0.0, 2.0)
    if round_.chance(0.4):
        round_.kill()


def requeue(round_: Round) -> None:
    """Jobs are put back to run again, as somebody asked for."""
    rng = round_.rng
    round_.seconds(0.3, 1.2)
    round_.start()
    for _ in range(rng.randint(1, 3)):
        round_.pause(0.1, 0.6)
        with round_.scheduler.lock:
            running = [(key, job) for key, job in round_.ours() if job.state is FakeState.RUNNING]
            if running:
                key, job = rng.choice(running)
                round_.note("rerun", key)
                round_.scheduler.requeue(job.native_id, delay=rng.choice([0.0, 0.5, 2 * GRACE]))
        if round_.chance(0.3):
            round_.kill()


def _older(path: Path, _: random.Random) -> None:
    """Have an intent be as it was before the native id was added."""
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if line.startswith("{")))


#: What can become of a file whose last writes were lost, or that came from a backup.
_DAMAGES: Mapping[str, Callable[[Path, random.Random], object]] = {
    "missing": lambda path, _: path.unlink(),
    "empty": lambda path, _: path.write_bytes(b""),
    "cut": lambda path, rng: os.truncate(path, rng.randrange(path.stat().st_size)),
    "garbage": lambda path, rng: path.write_bytes(rng.randbytes(40)),
    "older": _older,
}


def damaged(round_: Round) -> None:
    """The client is killed, and claims and intents on disk are damaged or gone before it starts again."""
    round_.start()
    round_.until(lambda: any(what == "end" for what, _ in proofs.proofs(round_.folder)))
    round_.pause(0.0, 0.6)
    round_.kill(is_restarted=False)
    if round_.chance(0.5):
        round_.until(lambda: all(job.state.final for job in round_.scheduler.jobs))
    for folder in sorted((round_.folder / "work").glob("*/*/*")):
        if folder.parent.name in {"jobs", "arrays"} and round_.chance(0.7):
            _damage(round_, folder)
    round_.start()


def _damage(round_: Round, folder: Path) -> None:
    """Damage claim and intent of a job or an array."""
    for path in sorted([*folder.glob("claim*"), *folder.glob("intent*")]):
        is_intent = path.name.startswith("intent")
        # what was asked for is still known mostly
        how = round_.rng.choice(
            sorted(_DAMAGES) if round_.chance(0.4) else ["older" if is_intent else "missing"]
        )
        if (how == "older" and not is_intent) or path.stat().st_size == 0:
            continue
        _DAMAGES[how](path, round_.rng)
        round_.note("damage", how=how, path=str(path))
        if is_intent and how != "older":
            # of an array, that goes for every element
            for it in proofs.notes(round_.folder):
                if it["what"] == "begun" and (folder.name == it["id"] or folder.parent.name == "arrays"):
                    round_.note("damaged", it["key"])


def clock(round_: Round) -> None:
    """The clock of the client jumps by an hour, and so do the times of what jobs leave."""
    rng, file = round_.rng, round_.folder / "clock"
    round_.seconds(0.2, 1.2)
    round_.cancels(0.15)
    round_.plan["tricks"]["clock"] = True
    round_.start()
    for _ in range(rng.randint(1, 3)):
        round_.pause(0.1, 0.8)
        file.write_text(str(rng.choice([-3600, 3600, 0])))
        if round_.chance(0.5):
            offset = rng.choice([-3600, 3600])
            for path in (round_.folder / "work").glob("*/events/*"):
                with contextlib.suppress(FileNotFoundError):
                    os.utime(path, (time.time() + offset,) * 2)
        if round_.chance(0.2):
            round_.kill()


def _mounted(round_: Round) -> Path:
    """A file system of its own for the work directory."""
    work = round_.folder / "work"
    if os.geteuid() != 0:
        round_.skip("mounting takes root")
    work.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700,nr_inodes=2000", "chaos", str(work)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        round_.skip("nothing can be mounted here")
    round_.last(lambda: _unmount(round_, work))
    return work


def _unmount(round_: Round, work: Path) -> None:
    # what was there is kept for whoever looks into it
    subprocess.run(["cp", "-a", str(work), str(round_.folder / "work-was")], check=False)
    subprocess.run(["umount", "--lazy", str(work)], check=False)


def readonly(round_: Round) -> None:
    """The file system of the work directory turns read-only while jobs run, and is writable again later."""
    work = _mounted(round_)
    round_.scheduler.keep = 300.0
    round_.seconds(0.2, 1.2)
    round_.start()
    round_.submitted()
    round_.pause(0.0, 0.5)

    def remount(how: str) -> bool:
        command = ["mount", "-o", f"remount,{how}", str(work)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    round_.note("unwritable")
    round_.undo(lambda: remount("rw"))
    # refused while somebody has a file open for writing
    round_.until(lambda: remount("ro"), 3.0)
    round_.pause(0.3, 2.5)
    if round_.chance(0.3):
        round_.kill()
        round_.pause(0.3, 1.0)


def full(round_: Round) -> None:
    """The disk of the work directory is full for a while."""
    work = _mounted(round_)
    round_.scheduler.keep = 300.0
    round_.seconds(0.2, 1.2)
    round_.start()
    round_.submitted(round_.rng.choice([0, 1]))
    round_.pause(0.0, 0.5)
    fill = work / "fill"
    fill.mkdir()

    def empty() -> None:
        for path in fill.iterdir():
            path.unlink()

    round_.undo(empty)
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


def late(round_: Round) -> None:
    """What jobs leave shows late in the client's view of the directory, as on NFS."""
    round_.cancels(0.15)
    round_.seconds(0.0, 0.8)
    # later than that, it is the grace period that is too short for the file system
    round_.plan["tricks"]["late"] = 0.7 * 2
    round_.plan["seconds"]["grace"] = 2.0
    round_.plan["config"]["network_files"] = True
    round_.start()
    if round_.chance(0.3):
        round_.pause(0.3, 1.0)
        round_.kill()


#: The faults by name.
FAULTS: dict[str, Callable[[Round], None]] = {
    it.__name__: it
    for it in (
        nothing,
        client,
        cancel,
        controller,
        restored,
        garbled,
        hanging,
        unclear,
        requeue,
        damaged,
        clock,
        readonly,
        full,
        late,
    )
}
