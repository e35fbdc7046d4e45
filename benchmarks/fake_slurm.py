"""A Slurm that takes every job and starts none: commands of a line or two, which answer at once.

`jpsi_testing.fake` has one that behaves like a Slurm; a measurement would include the cost of that behaviour.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

# A pid serves as a job id. The queue file has it, the comment, and the number of elements of an array.
_SBATCH = """\
#!/bin/sh
for it do case $it in --comment=*) comment=${{it#*=}} ;; esac; done
last=$(sed -n 's/^#SBATCH --array=1-//p')
echo $$ "$comment" $last >>{queue}
echo $$
"""
# It prints the columns that it is asked for, all of them after a header.
_SQUEUE = """\
#!/bin/sh
for it do case $it in --noheader) header=no ;; --Format=*) form=${{it#*=}} ;; esac; done
exec awk -v header="${{header-yes}}" -v form="$form" '
  BEGIN {{
    count = split(form, columns, ",")
    value["State"] = "PENDING"; value["Reason"] = "Priority"; value["exit_code"] = value["RestartCnt"] = 0
    value["SubmitTime"] = "2026-01-01T00:00:00"; value["StartTime"] = value["EndTime"] = "N/A"
    for (i = 1; i <= count; i++) sub(/:.*/, "", columns[i])
    if (header == "yes") {{ for (i = 1; i <= count; i++) printf "%s|=|", columns[i]; print "" }}
  }}
  {{
    value["JobID"] = $1; value["Comment"] = $2; value["JobArrayID"] = NF > 2 ? $1 "_[1-" $3 "]" : $1
    for (i = 1; i <= count; i++) printf "%s|=|", value[columns[i]]
    print ""
  }}
' {queue}
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
