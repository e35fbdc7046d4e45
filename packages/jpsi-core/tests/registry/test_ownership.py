"""Whose files are believed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from jpsi.registry.ownership import problem, refusal, refusal_within

USER = 1000
DIRECTORY, FILE, LINK = stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK


def judged(kind: int, mode: int, owner: int = USER, group: int = 5, **options: bool) -> str | None:
    status = os.stat_result((kind | mode, 0, 0, 1, owner, group, 0, 0, 0, 0))
    return problem("/x", status, user=USER, is_private=lambda gid, uid: (gid, uid) == (7, USER), **options)


@pytest.mark.parametrize(
    ("kind", "mode", "owner", "group", "is_way", "is_believed"),
    [
        (DIRECTORY, 0o755, USER, 5, False, True),
        (DIRECTORY, 0o700, 0, 5, False, True),
        (DIRECTORY, 0o755, 1001, 5, False, False),
        (DIRECTORY, 0o755, 1001, 5, True, False),
        (DIRECTORY, 0o775, USER, 5, False, False),
        (DIRECTORY, 0o775, USER, 7, False, True),
        (DIRECTORY, 0o775, 0, 7, False, False),
        (DIRECTORY, 0o757, USER, 7, False, False),
        (DIRECTORY, 0o1777, 0, 0, True, True),
        (DIRECTORY, 0o1777, 1001, 0, True, False),
        (DIRECTORY, 0o1777, 0, 0, False, False),
        (DIRECTORY, 0o777, 0, 0, True, False),
        (FILE, 0o644, USER, 5, False, True),
        (FILE, 0o664, USER, 5, False, False),
        (LINK, 0o777, USER, 5, False, True),
        (LINK, 0o777, 1001, 5, False, False),
    ],
)
def test_decision(kind: int, mode: int, owner: int, group: int, is_way: bool, is_believed: bool) -> None:
    assert (judged(kind, mode, owner, group, is_way=is_way) is None) is is_believed


def test_refusal_says_what_to_do() -> None:
    assert judged(FILE, 0o666) == "/x can be written by others (mode 0666); change that: chmod go-w /x"
    assert judged(FILE, 0o644, 1001) == "/x belongs to user 1001, not to you or root; have its owner changed"


def test_what_is_not_there_is_not_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none/at/all") is None


def test_every_step_counts(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    assert refusal(tmp_path / "a/b") is None

    (tmp_path / "a").chmod(0o777)

    assert "a can be written by others" in (refusal(tmp_path / "a/b") or "")
    (tmp_path / "a").chmod(0o1777)
    assert refusal(tmp_path / "a/b") is None


def test_steps_behind_a_link_count(tmp_path: Path) -> None:
    (tmp_path / "open/target").mkdir(parents=True)
    (tmp_path / "link").symlink_to("open/../open/target")
    assert refusal(tmp_path / "link") is None

    (tmp_path / "open").chmod(0o777)

    assert "open can be written by others" in (refusal(tmp_path / "link") or "")


def test_what_a_link_stands_in_counts(tmp_path: Path) -> None:
    for name in ("target", "open"):
        (tmp_path / name).mkdir()
    (tmp_path / "open/link").symlink_to(tmp_path / "target")
    (tmp_path / "open").chmod(0o777)

    assert "open can be written by others" in (refusal(tmp_path / "open/link") or "")


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert refusal(tmp_path / "a") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", [".", "file", "link", "inner/file"])
def test_file_of_another_user_is_refused_wherever_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "inner").mkdir()
    for file in ("file", "inner/file"):
        (tmp_path / file).write_text("")
    (tmp_path / "link").symlink_to("file")
    assert refusal_within(tmp_path) is None

    os.chown(tmp_path / name, 12345, -1, follow_symlinks=False)

    assert "belongs to user 12345" in (refusal_within(tmp_path) or refusal(tmp_path / name) or "")


def test_links_within_are_followed_and_may_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/dangling").symlink_to("nowhere")
    (tmp_path / "package/link.py").symlink_to("../elsewhere.py")
    (tmp_path / "elsewhere.py").write_text("")
    assert refusal_within(tmp_path / "package") is None

    (tmp_path / "elsewhere.py").chmod(0o666)

    assert "elsewhere.py can be written by others" in (refusal_within(tmp_path / "package") or "")


def test_file_that_vanishes_meanwhile_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").touch(0o666)
    (tmp_path / "there").chmod(0o666)
    monkeypatch.setattr(os, "walk", lambda path: [(str(path), [], ["gone", "there"])])

    assert f"{tmp_path}/there can be written" in (refusal_within(tmp_path) or "")
