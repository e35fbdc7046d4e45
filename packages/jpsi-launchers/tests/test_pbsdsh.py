"""`pbsdsh` hands the environment to its processes by a file, whichever shell /bin/sh is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from launchers_support import PBSDSH, lines_of, program, script_of, spec_of

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]


@pytest.mark.parametrize("shell", SHELLS)
def test_variables_of_the_user_arrive_whatever_their_names(tmp_path: Path, shell: str) -> None:
    """Bash as /bin/sh ends if a script sets one of its own variables that cannot be set, such as UID."""
    program(tmp_path / "bin" / "pbsdsh", PBSDSH)
    sh = tmp_path / "sh"
    sh.symlink_to(shell)
    (tmp_path / "nodes").write_text("node01\n")
    script = script_of(lines_of(spec_of("pbsdsh", process_count=1)), tmp_path / "launch")
    script.write_text(script.read_text().replace("/bin/sh", str(sh)))
    files = {"_jpsi_folder": tmp_path, "_jpsi_log": tmp_path / "log", "_jpsi_stdin": "/dev/null"}
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "word": "mine", "UID": "5"}

    done = subprocess.run(
        [sh, script, "printenv", "word"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={
            **environment,
            "JPSI_NODEFILE": f"{tmp_path}/nodes",
            **{it: str(at) for it, at in files.items()},
        },
    )

    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr
