"""What every launcher passes, over a program that plays the real one for a single process."""

from __future__ import annotations

from pathlib import Path

import pytest

import jpsi_launchers.aprun
import jpsi_launchers.flux
import jpsi_launchers.jsrun
import jpsi_launchers.multiple
import jpsi_launchers.srun
from jpsi.testing import LauncherConformance
from launchers_support import program


class TestMultiple(LauncherConformance):
    launcher_name = "multiple"
    max_processes = 3
    plugin = jpsi_launchers.multiple


_PLAY = 'while :; do case $1 in run) shift ;; -[nNdf]) shift 2 ;; -*) shift ;; *) exec "$@" ;; esac; done'


class _Played(LauncherConformance):
    """A launcher whose program is played: it drops its options and runs the command."""

    @pytest.fixture(autouse=True)
    def _play(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = (
            'while :; do case $1 in run) shift ;; -[nNd]) shift 2 ;; -*) shift ;; *) exec "$@" ;; esac; done'
        )
        program(tmp_path / "bin" / str(self.program), text)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")


class TestSrun(_Played):
    launcher_name = "srun"
    program = "srun"
    plugin = jpsi_launchers.srun


class TestJsrun(_Played):
    launcher_name = "jsrun"
    program = "jsrun"
    plugin = jpsi_launchers.jsrun


class TestAprun(_Played):
    launcher_name = "aprun"
    program = "aprun"
    plugin = jpsi_launchers.aprun


class TestFlux(_Played):
    launcher_name = "flux"
    program = "flux"
    plugin = jpsi_launchers.flux
