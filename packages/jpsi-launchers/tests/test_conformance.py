"""The conformance tests of launchers; those that need a program get a fake of it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

import jpsi_launchers.aprun
import jpsi_launchers.blaunch
import jpsi_launchers.flux
import jpsi_launchers.jsrun
import jpsi_launchers.mpirun
import jpsi_launchers.multiple
import jpsi_launchers.pbsdsh
import jpsi_launchers.script
import jpsi_launchers.srun
from jpsi_testing import LauncherConformance
from launchers_support import BLAUNCH, PBSDSH, RECORDINGS, make_fake_launcher, program


class TestMultiple(LauncherConformance):
    launcher_name = "multiple"
    max_processes = 3
    plugin = jpsi_launchers.multiple


class TestScript(LauncherConformance):
    launcher_name = "script"
    max_processes = 3
    plugin = jpsi_launchers.script
    custom_attributes: ClassVar = {"script.path": str(Path(__file__).with_name("launch it's.sh"))}


class _FakeProgramConformance(LauncherConformance):
    """The conformance tests of a launcher with a fake of its program."""

    max_processes = 3
    #: The variable with the rank of a process.
    rank: ClassVar[str]
    #: True if signals go to the session of each process.
    signals_sessions: ClassVar[bool] = False

    @pytest.fixture(autouse=True)
    def _install_fake(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "bin" / str(self.program)
        make_fake_launcher(path, self.rank, signals_sessions=self.signals_sessions)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")


class TestSrun(_FakeProgramConformance):
    launcher_name = "srun"
    program = "srun"
    rank = "SLURM_PROCID"
    plugin = jpsi_launchers.srun


class TestJsrun(_FakeProgramConformance):
    launcher_name = "jsrun"
    program = "jsrun"
    rank = "JSM_NAMESPACE_RANK"
    plugin = jpsi_launchers.jsrun


class TestAprun(_FakeProgramConformance):
    launcher_name = "aprun"
    program = "aprun"
    rank = "ALPS_APP_PE"
    plugin = jpsi_launchers.aprun


class TestFlux(_FakeProgramConformance):
    launcher_name = "flux"
    program = "flux"
    rank = "FLUX_TASK_RANK"
    signals_sessions = True
    plugin = jpsi_launchers.flux


class TestPbsdsh(LauncherConformance):
    launcher_name = "pbsdsh"
    program = "pbsdsh"
    max_processes = 3
    plugin = jpsi_launchers.pbsdsh

    @pytest.fixture(autouse=True)
    def _install_fake(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put a fake on PATH that is like those of Torque 6.1.3 and OpenPBS 23.06."""
        program(tmp_path / "bin" / "pbsdsh", PBSDSH)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")


class TestBlaunch(LauncherConformance):
    launcher_name = "blaunch"
    program = "blaunch"
    max_processes = 3
    plugin = jpsi_launchers.blaunch

    @pytest.fixture(autouse=True)
    def _install_fake(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put a fake on PATH that passes on neither environment, streams nor exit codes."""
        program(tmp_path / "bin" / "blaunch", BLAUNCH)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")


class TestIntelMpi(_FakeProgramConformance):
    launcher_name = "mpirun"
    program = "mpirun"
    rank = "PMI_RANK"
    plugin = jpsi_launchers.mpirun

    @pytest.fixture(autouse=True)
    def _install_fake(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put a fake mpirun on PATH that prints its version, and a program that runs processes."""
        version = RECORDINGS / "intel-2021.19.txt"
        program(tmp_path / "bin" / "mpirun", f'[ "$1" = --version ] && cat "{version}" || exit 3')
        make_fake_launcher(tmp_path / "bin" / "mpiexec.hydra", self.rank, signals_sessions=True)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
