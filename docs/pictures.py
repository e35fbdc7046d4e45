"""Makes the pictures of the command line in the guide, from a real run on the fake of Slurm.

    python docs/pictures.py
    python docs/pictures.py front     (only that of the front page)

It takes jpsi-cli[top] and jpsi-slurm. Jobs run for a few seconds; the pictures are written beside the pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

import jpsi
from jpsi_cli.jobs.top import Top
from jpsi_testing.fake import FakeScheduler, on_path

GUIDE = Path(__file__).parent / "guide"
COLUMNS, LINES = 100, 16
#: The views that are a command's output, by the name of their picture: those that run a job, and the others.
RUNS = {
    "run": ["run", "-x", "slurm", "--name", "hello", "--", "echo", "hello from a job"],
    "doctor": ["doctor", "-x", "slurm"],
    "validate": ["validate", "-f", "wrong.yaml"],
    "convert": ["convert", "heat.sh"],
}
VIEWS = {
    "ls": ["ls"],
    "show": ["show", "sweep-2"],
    "explain": ["explain", "sweep-2"],
    "explain-waiting": ["explain", "publish"],
    "script": ["script", "-x", "quick", "--processes", "8", "--launcher", "single", "./solve"],
    "queues": ["queues", "-x", "slurm"],
    "plugins": ["plugins", "--kind", "executor"],
    "config": ["config", "show"],
}
#: The session on the front page.
FRONT = [
    "run -x slurm -- echo 'hello from a node'",
    "submit -x slurm --name fit --time 10m -- python3 fit.py --data july.csv",
    "wait fit",
    "explain fit",
]
#: What is configured.
CONFIGURATION = """\
executors:
  slurm:
    defaults: {queue_name: main}
targets:
  quick:
    executor: slurm
    defaults: {queue_name: debug, duration: 10m}
"""
#: What some views are about.
FILES = {
    ".config/jpsi/config.yaml": CONFIGURATION,
    "wrong.yaml": """\
version: 1
resources: [{type: slot, label: task, count: 1, with: {type: core, cuont: 1}}]
tasks: [{command: ./solve, slot: tsk, count: {per_slot: 1}}]
attributes: {system: {duration: 1h}}
""",
    "heat.sh": """\
#!/bin/sh
#SBATCH --job-name=heat --partition=main
#SBATCH --ntasks=4 --time=1:30:00 --output=heat-%j.txt
srun ./heat
""",
    "fit.py": """\
import sys

with open(sys.argv[2]) as data:
    print(len(data.readlines()), "measurements")
""",
}
#: How many lines of a view are shown.
LONGEST = 24
# Sweeps of which one fails, one that used up its time, and some that wait.
JOBS = [
    ("prepare", "echo reading; echo done"),
    ("sweep-1", "echo step 1; sleep 600"),
    ("sweep-2", "echo 'sim: input.dat: No such file or directory' >&2; exit 2"),
    ("sweep-3", "for n in 1 2 3 4 5; do echo step $n of 5000; done; sleep 600"),
    ("analyse", "sleep 600"),
    ("publish", "sleep 600"),
]


def main() -> None:
    with fake_slurm():
        session = "".join(f"\x1b[1;32m$\x1b[0m jpsi {it}\n{shown(*shlex.split(it)).lstrip()}" for it in FRONT)
        (GUIDE.parent / "front.svg").write_text(picture(session, "login node"))
    if sys.argv[1:] == ["front"]:
        return
    with fake_slurm():
        take(RUNS)
    with fake_slurm():
        executor = jpsi.JobExecutor("slurm")
        jobs = [jpsi.Job(jpsi.JobSpec("sh", ["-c", text], name=name)) for name, text in JOBS]
        for job in jobs:
            executor.submit(job)
        jobs[0].wait()
        jobs[2].wait()
        jobs[3].wait(jpsi.JobState.ACTIVE)
        take(VIEWS)
        (GUIDE / "ls-watch.svg").write_text(picture(watched(), "jpsi ls --watch --refresh"))
        (GUIDE / "top.svg").write_text(plain(asyncio.run(topped())))
        (GUIDE / "wait.svg").write_text(picture(waited(jobs[3:]), "jpsi wait sweep-3 analyse publish"))
        executor.cancel_many(jobs)


@contextlib.contextmanager
def fake_slurm() -> Iterator[None]:
    """A user's home and a Slurm with room for two jobs, of which nothing was ever submitted."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        contextlib.chdir(home),
        FakeScheduler(slots=2) as slurm,
        on_path("slurm", slurm),
    ):
        places = {"XDG_STATE_HOME": ".local/state", "XDG_CONFIG_HOME": ".config", "XDG_CONFIG_DIRS": "etc"}
        for name, place in places.items():
            Path(home, place, "jpsi").mkdir(parents=True)
            os.environ[name] = str(Path(home, place))
        for file, text in FILES.items():
            Path(home, file).write_text(text)
        yield


def take(views: Mapping[str, Sequence[str]]) -> None:
    """Make the pictures of these views."""
    for name, arguments in views.items():
        (GUIDE / f"{name}.svg").write_text(picture(shown(*arguments), " ".join(["jpsi", *arguments])))


def shown(*arguments: str) -> str:
    """What a command has written to a terminal when it has ended."""
    with terminal(*arguments) as (process, ours):
        seen = b""
        # Linux returns EIO once no process has the other end open.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                seen += piece
        process.wait()
    lines = generic(written(seen.decode())).splitlines(keepends=True)
    return "".join(lines[:LONGEST]) + ("...\n" if len(lines) > LONGEST else "")


def generic(text: str) -> str:
    """What is of this machine and this run, as it could be anywhere."""
    text = re.sub(r"/\S*/jpsi-fake-\w+/bin", "/usr/bin", text)
    return text.replace(str(Path.cwd()), "/home/me").replace(os.uname().nodename, "node01")


def watched() -> str:
    """What `jpsi ls --watch --refresh` has drawn once it knows why jobs wait."""
    with terminal("ls", "--watch", "--refresh") as (process, ours):
        seen = b""
        while b"Resources" not in seen or not seen.endswith(b"\x1b[J"):
            seen += os.read(ours, 65536)
        process.terminate()
    screen = seen.decode().rpartition("\x1b[H")[2]
    return re.sub(r"\x1b\[[KJ]|\r", "", screen)


def waited(jobs: Sequence[jpsi.Job]) -> str:
    """What `jpsi wait` shows of jobs of which the first has been cancelled meanwhile."""
    with terminal("wait", *(job.id for job in jobs)) as (process, ours):
        seen = b""
        for awaited, then in ((b"active", jobs[0].cancel), (b"canceled", process.terminate)):
            while awaited not in seen:
                seen += os.read(ours, 65536)
            then()
    # the bar as it was drawn last
    return re.split(r"\r\x1b\[2K", seen.decode())[-1].splitlines()[0] + "\n"


@contextlib.contextmanager
def terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run `jpsi` on a terminal; yields the process, and our end of the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "jpsi_cli", *arguments]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            os.close(ours)


def written(text: str) -> str:
    """What is left on the screen of what was written line by line: bars that were wiped are not."""
    lines = text.replace("\r\n", "\n").split("\n")
    kept = [re.split(r"\r|\x1b\[2K", line)[-1] for line in lines]
    return re.sub(r"\x1b\[[?0-9;]*[A-LN-Za-ln-z]", "", "\n".join(kept)).strip("\n") + "\n"


async def topped() -> str:
    """What `jpsi top` looks like with the cursor on a job that writes."""
    app = Top()
    async with app.run_test(size=(COLUMNS, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("down", "down")
        await pilot.pause()
        return app.export_screenshot()


def picture(screen: str, title: str) -> str:
    """A terminal that shows this."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen))
    return plain(console.export_svg(title=title))


def plain(svg: str) -> str:
    """A picture that fetches no fonts, and has nothing at the ends of its lines."""
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    main()
