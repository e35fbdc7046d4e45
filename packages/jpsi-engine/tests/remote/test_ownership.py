"""The remote check of a path: a shell finds the directories on it that other users can change."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jpsi.contract.shell import word
from jpsi_engine.remote.folders import parse_listing, render_listing
from jpsi_engine.remote.markers import render_poll
from jpsi_engine.remote.ownership import UNSAFE, parse_unsafe, render_unsafe_function

SHELLS = [shell for shell in ("dash", "bash", "ksh", "busybox") if shutil.which(shell)]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    return ["busybox", "sh"] if request.param == "busybox" else [request.param]


def run(text: str, shell: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(shell, input=text, capture_output=True, text=True, check=False)


def unsafe(root: Path, shell: list[str]) -> str | None:
    return parse_unsafe(run(f"{render_unsafe_function(str(root))}\n{UNSAFE}\n", shell).stdout)


def make(path: Path, mode: int = 0o755) -> Path:
    path.mkdir(parents=True)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("mode", "is_safe"),
    [(0o755, True), (0o1777, True), (0o1775, True), (0o777, False), (0o757, False), (0o703, False)],
    ids=lambda it: f"{it:o}" if isinstance(it, int) else str(it),
)
@pytest.mark.parametrize("rest", ["", "work/x"], ids=["there", "not there"])
def test_modes_of_the_steps_count(
    tmp_path: Path, shell: list[str], mode: int, is_safe: bool, rest: str
) -> None:
    way = make(tmp_path / "it's a way", mode)

    found = unsafe(way / rest, shell)

    assert found is None if is_safe else str(found).startswith(f"{way} (owner {os.geteuid()}, d")


@pytest.mark.parametrize(("mode", "is_asked"), [(0o755, False), (0o775, True)], ids=["user", "group"])
def test_groups_are_looked_up_only_if_one_can_write(
    tmp_path: Path, shell: list[str], mode: int, is_asked: bool
) -> None:
    """A directory service may take long to answer."""
    way, tools, calls = make(tmp_path / "way", mode), make(tmp_path / "tools"), tmp_path / "calls"
    calls.touch()
    for name in ("id", "getent"):
        program = tools / name
        real = shutil.which(name) or "false"
        program.write_text(f'#!/bin/sh\necho {name} "$@" >>{word(str(calls))}\nexec {real} "$@"\n')
        program.chmod(0o755)

    run(f"PATH={word(str(tools))}:$PATH\n{render_unsafe_function(str(way))}\n{UNSAFE}\n", shell)

    assert (calls.read_text().splitlines() == ["id -u"]) is not is_asked


def test_group_that_is_not_private_counts(tmp_path: Path, shell: list[str]) -> None:
    """The user who runs this may have a private group: without getent(1), jpsi cannot know."""
    way = make(tmp_path / "way", 0o775)
    tools = make(tmp_path / "tools")
    for name in ("id", "find", "ls"):
        (tools / name).symlink_to(shutil.which(name) or "")
    without = f"PATH={word(str(tools))}\n{render_unsafe_function(str(way))}\n{UNSAFE}\n"
    (tools / "private").mkdir()
    (tools / "private/getent").write_text('#!/bin/sh\necho "$2:x:1:"\n')
    (tools / "private/id").write_text(
        f'#!/bin/sh\ncase $1 in -un | -gn) echo me ;; *) exec {shutil.which("id")} "$@" ;; esac\n'
    )
    for file in (tools / "private").iterdir():
        file.chmod(0o755)
    private = without.replace(f"PATH={word(str(tools))}", f"PATH={word(str(tools / 'private'))}:$PATH", 1)

    assert parse_unsafe(run(without, shell).stdout) is not None
    assert parse_unsafe(run(private, shell).stdout) is None
    (tools / "private/getent").write_text('#!/bin/sh\necho "$2:x:1:me,you"\n')
    assert parse_unsafe(run(private, shell).stdout) is not None


def test_steps_behind_a_link_count(tmp_path: Path, shell: list[str]) -> None:
    make(tmp_path / "open/inner")
    (tmp_path / "link").symlink_to("open/inner")
    assert unsafe(tmp_path / "link/work", shell) is None

    (tmp_path / "open").chmod(0o777)

    assert str(unsafe(tmp_path / "link/work", shell)).startswith(f"{tmp_path}/open (")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["way", "link"])
def test_step_of_another_user_counts(tmp_path: Path, shell: list[str], name: str) -> None:
    make(tmp_path / "way/inner")
    (tmp_path / "link").symlink_to("way")
    assert unsafe(tmp_path / name / "inner", shell) is None

    os.chown(tmp_path / name, 4321, -1, follow_symlinks=False)

    assert f"{tmp_path}/{name}" in str(unsafe(tmp_path / name / "inner", shell))
    assert "(owner 4321, " in str(unsafe(tmp_path / name / "inner", shell))


def test_folders_that_others_can_change_are_neither_listed_nor_read(tmp_path: Path, shell: list[str]) -> None:
    root = make(tmp_path / "way/root", 0o700)
    for name in ("jobs/a1", "arrays/b1", "events"):
        (root / name).mkdir(parents=True)
    (root / "events/a1.1.exit.run.0").touch()
    assert parse_listing(run(render_listing(str(root)), shell).stdout) == ["jobs/a1", "arrays/b1"]
    assert "a1.1.exit.run.0" in run(render_poll(f"{root}/events"), shell).stdout

    (tmp_path / "way").chmod(0o777)

    listed = run(render_listing(str(root)), shell)
    assert parse_listing(listed.stdout) is None
    assert f"{tmp_path}/way" in listed.stderr
    assert run(render_poll(f"{root}/events"), shell).stdout == ""
