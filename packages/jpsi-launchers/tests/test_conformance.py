"""What every launcher passes; those that need a program have one that plays it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

import jpsi_launchers.aprun
import jpsi_launchers.flux
import jpsi_launchers.jsrun
import jpsi_launchers.mpirun
import jpsi_launchers.multiple
import jpsi_launchers.script
import jpsi_launchers.srun
from jpsi_testing import LauncherConformance
from launchers_support import RECORDINGS, play, program


class TestMultiple(LauncherConformance):
    launcher_name = "multiple"
    max_processes = 3
    plugin = jpsi_launchers.multiple


class TestScript(LauncherConformance):
    launcher_name = "script"
    max_processes = 3
    plugin = jpsi_launchers.script
    custom_attributes: ClassVar = {"script.path": str(Path(__file__).with_name("launch it's.sh"))}


class _Played(LauncherConformance):
    """A launcher whose program is played."""

    max_processes = 3
    #: The variable by which a process knows its rank.
    rank: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _play(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        play(tmp_path / "bin" / str(self.program), self.rank)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")


class TestSrun(_Played):
    launcher_name = "srun"
    program = "srun"
    rank = "SLURM_PROCID"
    plugin = jpsi_launchers.srun


class TestJsrun(_Played):
    launcher_name = "jsrun"
    program = "jsrun"
    rank = "JSM_NAMESPACE_RANK"
    plugin = jpsi_launchers.jsrun


class TestAprun(_Played):
    launcher_name = "aprun"
    program = "aprun"
    rank = "ALPS_APP_PE"
    plugin = jpsi_launchers.aprun


class TestFlux(_Played):
    launcher_name = "flux"
    program = "flux"
    rank = "FLUX_TASK_RANK"
    plugin = jpsi_launchers.flux


class TestIntelMpi(_Played):
    launcher_name = "mpirun"
    program = "mpirun"
    rank = "PMI_RANK"
    plugin = jpsi_launchers.mpirun

    @pytest.fixture(autouse=True)
    def _play(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its mpirun is only asked what it is; the program beside it runs processes."""
        version = RECORDINGS / "intel-2021.19.txt"
        program(tmp_path / "bin" / "mpirun", f'[ "$1" = --version ] && cat "{version}" || exit 3')
        play(tmp_path / "bin" / "mpiexec.hydra", self.rank, is_hydra=True)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
