"""Writes and reads the proofs that jobs, clients and trials leave in the directory of a round.

plan        the description of the round: the system, the configuration and the jobs, as JSON
proof       a line for each act of a job: `start 3`, `end 3`, `killed 3`
notes       a line of JSON for each act of a client or the trial, and each status that a client got
work/       jpsi's work directory
*.log       logs of clients
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos.referee import JobFacts, ReportedStatus

#: The script of a job; its arguments are its key, its exit code, its seconds and the file of proofs.
JOB = """\
echo "start $1" >>"$4"
trap 'echo "killed $1" >>"$4"; exit 143' TERM
sleep "$3" & wait $!
trap - TERM
echo "end $1" >>"$4"
exit "$2"
"""

#: The script of a foreign job, with the file of proofs and its own number.
FOREIGN_SCRIPT = """\
#!/bin/sh
trap 'echo "reached {number} by TERM" >>{proof}; exit 143' TERM
{command}
"""


def exit_code_of(key: int) -> int:
    """Return the exit code of a job: 0 for the first, and a code that no other job has for the others."""
    return 0 if key == 0 else 20 + key


def note(folder: Path, what: str, key: int | None = None, **more: Any) -> None:
    """Record an event, whole or not at all."""
    line = json.dumps({"what": what, "key": key, **more}) + "\n"
    fd = os.open(folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def notes(folder: Path) -> list[dict[str, Any]]:
    """Return all events that were recorded until now."""
    path = folder / "notes"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def proofs(folder: Path) -> list[tuple[str, int]]:
    """Return the proofs of the jobs until now: for each the act and the key of the job."""
    path = folder / "proof"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(what, int(key)) for what, key in (line.split()[:2] for line in lines) if what != "reached"]


def reached(folder: Path) -> list[str]:
    """Return the signals that have reached foreign jobs, as these recorded them."""
    path = folder / "proof"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line.startswith("reached ")]


def facts(folder: Path, count: int) -> Iterator[JobFacts]:
    """Yield the facts about each job of a round."""
    events, job_acts = notes(folder), proofs(folder)
    snapshots = [it["states"] for it in events if it["what"] == "looked"]
    on_disk = {int(key) for key in snapshots[-1]} if snapshots else set()
    is_unwritable = any(it["what"] == "unwritable" for it in events)
    for key in range(count):
        own = [it for it in events if it["key"] == key]
        acts = [it["what"] for it in own]
        reported = [
            ReportedStatus(it["source"], it["state"], it["exit_code"], it["reason"])
            for it in own
            if it["what"] == "final"
        ]
        yield JobFacts(
            key=key,
            code=exit_code_of(key),
            proof=[what for what, number in job_acts if number == key],
            reported=list(dict.fromkeys(reported)),
            is_begun="begun" in acts,
            is_on_disk=key in on_disk,
            is_cancelled="cancel" in acts,
            reruns=acts.count("rerun"),
            is_forgotten="forgotten" in acts,
            is_killed="killed" in acts,
            is_unwritable=is_unwritable,
            is_damaged="damaged" in acts,
        )
