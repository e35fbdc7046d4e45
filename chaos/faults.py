"""Faults of any batch system: each function starts the client, and makes something go wrong."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from chaos import proofs
from chaos.rounds import Round


def nothing(round_: Round) -> None:
    """Inject no fault at all: jobs run, arrays too, and some are cancelled."""
    round_.plan_cancels()
    round_.start()


def client(round_: Round) -> None:
    """Kill the client with -9 at random moments, and restart it; sometimes run a second one beside it."""
    round_.plan_cancels(0.15)
    round_.start()
    for _ in range(round_.rng.randint(1, 4)):
        if round_.chance(0.2):
            round_.start(is_follower=True)
        round_.kill()


def cancel(round_: Round) -> None:
    """Cancel jobs at random moments, while clients are killed."""
    round_.seconds(0.2, 1.5)
    round_.plan_cancels(0.8)
    round_.start()
    if round_.chance(0.5):
        round_.pause(0.3, 1.5)
        round_.kill()


def _without_native_id(path: Path, _: random.Random) -> None:
    """Restore an intent to its content before the native id was added."""
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if line.startswith("{")))


#: The damages to a file whose last writes were lost, or that came from a backup.
_DAMAGES: Mapping[str, Callable[[Path, random.Random], object]] = {
    "missing": lambda path, _: path.unlink(),
    "empty": lambda path, _: path.write_bytes(b""),
    "cut": lambda path, rng: os.truncate(path, rng.randrange(path.stat().st_size)),
    "garbage": lambda path, rng: path.write_bytes(rng.randbytes(40)),
    "older": _without_native_id,
}


def damaged(round_: Round) -> None:
    """Kill the client, and damage or remove claims and intents on disk before it restarts."""
    round_.start()
    round_.wait_until(lambda: any(what == "end" for what, _ in proofs.proofs(round_.folder)))
    round_.pause(0.0, 0.6)
    round_.kill(is_restarted=False)
    if round_.chance(0.5):
        round_.wait_until(round_.are_all_final)
    for folder in sorted((round_.folder / "work").glob("*/*/*")):
        if folder.parent.name in {"jobs", "arrays"} and round_.chance(0.7):
            _damage(round_, folder)
    round_.start()


def _damage(round_: Round, folder: Path) -> None:
    """Damage the claim and the intent of a job or an array."""
    for path in sorted([*folder.glob("claim*"), *folder.glob("intent*")]):
        is_intent = path.name.startswith("intent")
        # mostly leave the intent readable, with its request
        how = round_.rng.choice(
            sorted(_DAMAGES) if round_.chance(0.4) else ["older" if is_intent else "missing"]
        )
        if (how == "older" and not is_intent) or path.stat().st_size == 0:
            continue
        _DAMAGES[how](path, round_.rng)
        round_.note("damage", how=how, path=str(path))
        if is_intent and how != "older":
            # the intent of an array concerns every element
            for it in proofs.notes(round_.folder):
                if it["what"] == "begun" and (folder.name == it["id"] or folder.parent.name == "arrays"):
                    round_.note("damaged", it["key"])


def clock(round_: Round) -> None:
    """Let the client's clock jump by an hour, and the times of the files that jobs leave."""
    rng, file = round_.rng, round_.folder / "clock"
    round_.seconds(0.2, 1.2)
    round_.plan_cancels(0.15)
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


def late(round_: Round) -> None:
    """Show the client late the files that jobs leave, as NFS does."""
    round_.plan_cancels(0.15)
    round_.seconds(0.0, 0.8)
    # with a longer delay, the grace period would be too short for the file system
    round_.plan["tricks"]["late"] = 0.7 * 2
    round_.plan["seconds"]["grace"] = 2.0
    round_.plan["config"]["network_files"] = True
    round_.start()
    if round_.chance(0.3):
        round_.pause(0.3, 1.0)
        round_.kill()


#: The faults by name.
FAULTS: Mapping[str, Callable[[Round], None]] = {
    it.__name__: it for it in (nothing, client, cancel, damaged, clock, late)
}
