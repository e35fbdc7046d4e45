"""Makes the pictures of `jpsi ls --watch` and `jpsi top` in the guide, from a real run on the fake of Slurm.

    python docs/pictures.py

It takes jpsi-cli[top] and jpsi-slurm. Jobs run for a few seconds; the pictures are written beside the guide.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

import jpsi
from jpsi.fakes import FakeScheduler, on_path
from jpsi_cli.top import Top

GUIDE = Path(__file__).parent / "guide"
COLUMNS, LINES = 100, 16
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
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as state,
        FakeScheduler(slots=2) as slurm,
        on_path("slurm", slurm),
    ):
        os.environ |= {"XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state, "XDG_CONFIG_DIRS": state}
        executor = jpsi.JobExecutor("slurm")
        jobs = [jpsi.Job(jpsi.JobSpec("sh", ["-c", text], name=name)) for name, text in JOBS]
        for job in jobs:
            executor.submit(job)
        jobs[0].wait()
        jobs[2].wait()
        jobs[3].wait(jpsi.JobState.ACTIVE)
        (GUIDE / "ls-watch.svg").write_text(picture(watched(), "jpsi ls --watch --refresh"))
        (GUIDE / "top.svg").write_text(plain(asyncio.run(topped())))
        executor.cancel_many(jobs)


def watched() -> str:
    """What `jpsi ls --watch --refresh` has drawn once it knows why jobs wait."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "jpsi_cli", "ls", "--watch", "--refresh"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, env=environment) as process:
        seen = b""
        while b"Resources" not in seen or not seen.endswith(b"\x1b[J"):
            seen += os.read(ours, 65536)
        process.terminate()
    screen = seen.decode().rpartition("\x1b[H")[2]
    return re.sub(r"\x1b\[[KJ]|\r", "", screen)


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
