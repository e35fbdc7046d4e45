"""A Slurm that takes every job and starts none: commands of a line or two, which answer at once.

`jpsi_testing.fake` has one that behaves like a Slurm; a measurement would include the cost of that behaviour.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

# A pid serves as a unique job id; the queue file has it and, for an array, the number of its elements.
_SBATCH = """\
#!/bin/sh
last=$(sed -n 's/^#SBATCH --array=1-//p')
echo $$ $last >>{queue}
echo $$
"""
_SQUEUE = """\
#!/bin/sh
exec awk '{{
  shown = NF > 1 ? $1 "_[1-" $2 "]" : $1
  print shown "|" $1 "|PENDING|0|0|2026-01-01T00:00:00|N/A|N/A||Priority|"
}}' {queue}
"""
_NOTHING = "#!/bin/sh\nexit 0\n"
_COMMANDS = {
    "sbatch": _SBATCH,
    "squeue": _SQUEUE,
    "sacct": _NOTHING,
    "scontrol": _NOTHING,
    "scancel": _NOTHING,
}


@contextlib.contextmanager
def fake_slurm() -> Iterator[None]:
    """Put the commands of such a Slurm with an empty queue on PATH within the block."""
    with tempfile.TemporaryDirectory() as place:
        queue, commands, before = Path(place, "queue"), Path(place, "bin"), os.environ["PATH"]
        queue.touch()
        commands.mkdir()
        for name, text in _COMMANDS.items():
            command = commands / name
            command.write_text(text.format(queue=queue), encoding="ascii")
            command.chmod(0o755)
        os.environ["PATH"] = f"{commands}:{before}"
        try:
            yield
        finally:
            os.environ["PATH"] = before
