"""The conformance tests of launchers, with the MPIs of Debian."""

from __future__ import annotations

from pathlib import Path

import pytest

import jpsi_launchers.mpiexec
import jpsi_launchers.mpirun
from jpsi_testing import LauncherConformance
from launchers_support import missing, program


class _Real(LauncherConformance):
    """A launcher over one of the MPIs of Debian, which may be installed side by side."""

    max_processes = 3
    real: str

    @pytest.fixture(autouse=True)
    def _choose(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if missing(self.real):
            pytest.skip(f"{self.real} is not installed")
        program(tmp_path / "bin" / str(self.program), f'exec {self.real} "$@"')
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")


class TestOpenMpi(_Real):
    launcher_name = "mpirun"
    program = "mpirun"
    plugin = jpsi_launchers.mpirun
    real = "mpirun.openmpi"


class TestMpich(_Real):
    launcher_name = "mpiexec"
    program = "mpiexec"
    plugin = jpsi_launchers.mpiexec
    real = "mpiexec.mpich"
