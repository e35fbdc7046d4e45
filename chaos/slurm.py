"""Rounds on a real Slurm, which ci/slurm has started, and their faults.

They run as an ordinary user, and use ci/slurm/control for acts of root. Rounds whose fault concerns the whole
system run alone.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from chaos import faults, proofs, tampering
from chaos.referee import ForeignJobFacts, Verdict
from chaos.rounds import Client, Round, Trial

#: The name of the real Slurm among the systems.
NAME = "real"
#: The variable with the socket of ci/slurm/control.
CONTROL = "JPSI_CI_CONTROL"
# The small file system that ci/slurm/control mounts.
_SMALL = Path("/run/jpsi-ci/small")
_SECONDS = {
    "kill_delay": 1.0,
    "command_timeout": 4.0,
    "shortest_interval": 0.3,
    "longest_interval": 1.0,
    "grace": 3.0,
}
# Slurm holds a job that it could not start, such as after the controller was killed, until its owner releases
# it.
_HELD_BY_SLURM = "launch failed requeued held"
# A job without markers whose native id a foreign job has got may wait for the end of that job.
_FOREIGN_SCRIPTS = ("exit 0", "exit 0", "sleep 60 & wait $!", "sleep 60 & wait $!", "exit 3")


class SlurmRound(Round):
    """A round on a real Slurm."""

    #: Slurm runs a job again 120 s after it could not start it.
    timeout_seconds = 240.0

    def __init__(self, trial: Trial, folder: Path) -> None:
        client = Client("slurm", "jpsi_slurm.config:SlurmConfig", {}, _SECONDS)
        super().__init__(trial, folder, client)
        self.plan["name"] = f"r{os.getpid()}x{time.monotonic_ns()}x"
        self.foreign_jobs: list[str] = []

    def names(self) -> dict[str, int]:
        """Return the keys of the jobs of this round, by the jobs' names in Slurm."""
        return {f"{self.plan['name']}{key}": key for key in range(self.count)}

    def has_submitted(self, count: int) -> bool:
        """See `Round`."""
        return len([it for it in proofs.notes(self.folder) if it["what"] == "submitted"]) >= count

    def are_all_final(self) -> bool:
        """See `Round`."""
        self.release_held_jobs()
        listed = _run("squeue", "-h", "--me", "-n", ",".join(self.names()), "-o", "%A")
        return listed.returncode == 0 and not listed.stdout.strip()

    def release_held_jobs(self) -> None:
        """Release jobs that Slurm holds, as their owner would."""
        listed = _run("squeue", "-h", "--me", "-t", "PD", "-n", ",".join(self.names()), "-o", "%A|%r")
        for native_id, _, reason in (line.partition("|") for line in listed.stdout.splitlines()):
            if reason == _HELD_BY_SLURM:
                _run("scontrol", "release", native_id)

    def repair(self) -> None:
        """See `Round`."""
        (self.folder / "tamper").unlink(missing_ok=True)
        if self.trial.fault in ALONE:
            control("up")
        waiting = _run("squeue", "-h", "--me", "-t", "PD", "-n", ",".join(self.names()), "-o", "%A")
        for native_id in dict.fromkeys(waiting.stdout.split()):
            _run("scontrol", "update", f"JobId={native_id}", "StartTime=now")

    def states(self) -> dict[int, str]:
        """Return the state of each job of the round that the controller knows."""
        listed = _run("squeue", "-h", "--me", "-t", "all", "-n", ",".join(self.names()), "-o", "%j %T")
        rows = [line.split() for line in listed.stdout.splitlines()]
        return {self.names()[row[0]]: row[1] for row in rows if len(row) > 1 and row[0] in self.names()}

    def submit_foreign_jobs(self, count: int) -> None:
        """Submit foreign jobs, which get the native ids of forgotten jobs."""
        for number in range(count):
            command = self.rng.choice(_FOREIGN_SCRIPTS)
            text = proofs.FOREIGN_SCRIPT.format(number=number, proof=self.folder / "proof", command=command)
            options = ("--parsable", "--chdir=/", "--output=/dev/null", "--time=10")
            submitted = _run("sbatch", *options, stdin=text)
            if submitted.returncode == 0:
                self.foreign_jobs.append(submitted.stdout.strip())
                self.note("foreign job", native_id=self.foreign_jobs[-1], command=command)

    def foreign_job_facts(self) -> list[ForeignJobFacts]:
        """See `Round`."""
        reported = {line.split()[1] for line in proofs.reached(self.folder)}
        found = []
        for number, native_id in enumerate(self.foreign_jobs):
            state = _run("squeue", "-h", "-t", "all", "-j", native_id, "-o", "%T").stdout.strip()
            reached = "cancelled" if state == "CANCELLED" else "signalled" if str(number) in reported else ""
            found.append(ForeignJobFacts(native_id, reached))
        return found

    def clear(self) -> None:
        """Cancel all jobs of the round."""
        if self.foreign_jobs:
            _run("scancel", *self.foreign_jobs)
        _run("scancel", "--me", "-n", ",".join(self.names()))


def control(verb: str) -> None:
    """Send a command to ci/slurm/control, and raise if it fails."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.environ[CONTROL])
        client.sendall(verb.encode() + b"\n")
        code = client.makefile().readline().strip()
    if code != "0":
        msg = f"ci/slurm/control {verb}: {code or 'no answer'}"
        raise RuntimeError(msg)


def _run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words, input=stdin, capture_output=True, text=True, errors="replace", check=False, timeout=30
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", "no answer in time")


def _unfinished(round_: SlurmRound) -> set[int]:
    """Return the jobs that have begun and not ended."""
    last = {key: what for what, key in proofs.proofs(round_.folder)}
    return {key for key, what in last.items() if what == "start"}


def controller(round_: SlurmRound) -> None:
    """Kill the controller right after submissions, and restart it; foreign jobs get the native ids."""
    if round_.chance(0.6):
        for job in round_.plan["jobs"]:
            job["options"] = {"slurm.begin": "now+1hour"}
    else:
        round_.seconds(0.3, 4.0)
    round_.plan_cancels(0.4, 2.0, 8.0)
    round_.start()
    round_.wait_for_submissions(round_.count)
    round_.pause(0.0, round_.rng.choice([0.0, 0.5]))
    if is_killed := round_.chance(0.4):
        round_.clients.kill()
    control("kill-controller")
    round_.note("controller killed")
    control("start-controller")
    round_.submit_foreign_jobs(round_.count + 1)
    states, unfinished = round_.states(), _unfinished(round_)
    for key in set(range(round_.count)) - states.keys():
        round_.note("forgotten", key)
        if key in unfinished:
            # its node ends it as soon as the controller says that it does not know it
            round_.note("killed", key)
    if is_killed:
        round_.start()
    round_.pause(1.0, 4.0)


def restored(round_: SlurmRound) -> None:
    """Kill the controller as jobs end, and restart it with a state from before that."""
    round_.seconds(0.2, 2.5)
    round_.start()
    round_.wait_until(lambda: any(what == "end" for what, _ in proofs.proofs(round_.folder)), 20.0)
    round_.pause(0.0, 0.6)
    if is_killed := round_.chance(0.3):
        round_.clients.kill()
    control("kill-controller")
    round_.note("controller killed")
    ended = {key for what, key in proofs.proofs(round_.folder) if what == "end"}
    for key in set(range(round_.count)) - ended:
        # jobs that had not ended may be run again
        round_.note("rerun", key)
        round_.note("killed", key)
        round_.note("forgotten", key)
    round_.pause(0.0, 1.5)
    control("start-controller")
    if is_killed:
        round_.start()


def frozen(round_: SlurmRound) -> None:
    """Freeze the controller while jobs are submitted; it takes them when it thaws."""
    is_late = round_.chance(0.5)
    if is_late:
        round_.start()
        round_.wait_for_submissions()
    control("freeze-controller")
    round_.at_end_of_fault(lambda: control("thaw-controller"))
    if not is_late:
        round_.start()
    round_.pause(2.0, 12.0)
    if round_.chance(0.4):
        round_.kill()
        round_.pause(0.0, 3.0)


def garbled(round_: SlurmRound) -> None:
    """Let status commands exit 0 and print garbage, for longer than the grace period."""
    commands, tamper = round_.folder / "bin", round_.folder / "tamper"
    commands.mkdir()
    module = Path(tampering.__file__)
    for name in ("squeue", "sacct"):
        file = commands / name
        file.write_text(
            f'#!/bin/sh\n[ -e {tamper} ] || exec /usr/bin/{name} "$@"\n'
            f'/usr/bin/{name} "$@" 2>/dev/null | {sys.executable} {module} "$(cat {tamper})"\nexit 0\n'
        )
        file.chmod(0o755)
    round_.environment["PATH"] = f"{commands}:{round_.environment['PATH']}"
    how = round_.rng.choice(sorted(tampering.garblings(round_.rng)))
    round_.note("tampered", how=how)
    round_.seconds(1.0, 6.0)
    round_.plan_cancels(0.1, 1.0, 4.0)
    round_.start()
    round_.wait_for_submissions()
    round_.pause(0.0, 1.0)
    tamper.write_text(how)
    round_.pause(4.0, 8.0)
    if round_.chance(0.3):
        round_.kill()
        round_.pause(4.0, 6.0)


def requeue(round_: SlurmRound) -> None:
    """Requeue jobs, as if their user had requested it."""
    round_.seconds(1.0, 4.0)
    round_.start()
    for _ in range(round_.rng.randint(1, 2)):
        round_.wait_until(lambda: "RUNNING" in round_.states().values(), 15.0)
        listed = _run("squeue", "-h", "--me", "-t", "R", "-n", ",".join(round_.names()), "-o", "%i %j")
        rows = [line.split() for line in listed.stdout.splitlines()]
        if rows:
            native_id, name = round_.rng.choice(rows)
            round_.note("rerun", round_.names()[name])
            _run("scontrol", "requeue", native_id)
        if round_.chance(0.3):
            round_.kill()


def readonly(round_: SlurmRound) -> None:
    """Make the file system of the work directory read-only while jobs run, and writable again later."""
    control("mount")
    round_.at_end_of_round(lambda: control("unmount"))
    round_.plan["work"] = str(_SMALL / "work")
    round_.seconds(0.5, 4.0)
    round_.start()
    round_.wait_for_submissions()
    round_.pause(0.0, 3.0)
    round_.note("unwritable")
    round_.at_end_of_fault(lambda: control("writable"))
    control("readonly")
    round_.pause(1.0, 5.0)


#: The faults by name.
FAULTS: Mapping[str, Callable[[SlurmRound], None]] = {
    **faults.FAULTS,
    **{it.__name__: it for it in (controller, restored, frozen, garbled, requeue, readonly)},
}
#: The faults that concern the whole system.
ALONE = frozenset({"controller", "restored", "frozen", "readonly"})


def play(trial: Trial, folder: Path) -> Verdict:
    """Play a round on the real Slurm."""
    round_ = SlurmRound(trial, folder)
    try:
        return round_.run(FAULTS[trial.fault])
    finally:
        round_.clear()
