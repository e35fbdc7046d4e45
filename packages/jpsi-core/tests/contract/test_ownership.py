"""The owners and modes of files that jpsi trusts."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from jpsi.contract import ownership
from jpsi.contract.ownership import Step, problem, refusal, refusal_within

USER = 1000
DIRECTORY, FILE, LINK = stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK


def step(kind: int, mode: int, owner: int = USER, group: int = 5, acl: bytes | None = None) -> Step:
    return Step("/x", os.stat_result((kind | mode, 0, 0, 1, owner, group, 0, 0, 0, 0)), acl)


def problem_of(it: Step, *, is_way: bool = False) -> str | None:
    return problem(it, user=USER, is_private=lambda gid, uid: (gid, uid) == (7, USER), is_way=is_way)


@pytest.mark.parametrize(
    ("kind", "mode", "owner", "group", "is_way", "is_safe"),
    [
        pytest.param(DIRECTORY, 0o755, USER, 5, False, True, id="own"),
        pytest.param(DIRECTORY, 0o700, 0, 5, False, True, id="root's"),
        pytest.param(DIRECTORY, 0o755, 1001, 5, False, False, id="another's"),
        pytest.param(DIRECTORY, 0o755, 1001, 5, True, False, id="another's on the way"),
        pytest.param(DIRECTORY, 0o775, USER, 5, False, False, id="a group writes"),
        pytest.param(DIRECTORY, 0o775, USER, 5, True, False, id="a group writes on the way"),
        pytest.param(DIRECTORY, 0o775, USER, 7, False, True, id="the private group writes"),
        pytest.param(DIRECTORY, 0o775, USER, 7, True, True, id="the private group writes on the way"),
        pytest.param(DIRECTORY, 0o775, 0, 7, False, False, id="the user's group writes to root's"),
        pytest.param(DIRECTORY, 0o757, USER, 7, False, False, id="all write"),
        pytest.param(DIRECTORY, 0o777, 0, 0, True, False, id="all write on the way"),
        pytest.param(DIRECTORY, 0o1777, 0, 0, True, True, id="sticky on the way"),
        pytest.param(DIRECTORY, 0o1777, USER, 0, True, True, id="own sticky on the way"),
        pytest.param(DIRECTORY, 0o1775, USER, 5, True, True, id="sticky for a group on the way"),
        pytest.param(DIRECTORY, 0o1777, 1001, 0, True, False, id="another's sticky on the way"),
        pytest.param(DIRECTORY, 0o1777, 0, 0, False, False, id="sticky itself"),
        pytest.param(FILE, 0o644, USER, 5, False, True, id="own file"),
        pytest.param(FILE, 0o664, USER, 5, False, False, id="a group writes the file"),
        pytest.param(LINK, 0o777, USER, 5, False, True, id="own link"),
        pytest.param(LINK, 0o777, 0, 5, True, True, id="root's link"),
        pytest.param(LINK, 0o777, 1001, 5, False, False, id="another's link, who may retarget it"),
        pytest.param(LINK, 0o777, 1001, 5, True, False, id="another's link on the way"),
    ],
)
def test_decision(kind: int, mode: int, owner: int, group: int, is_way: bool, is_safe: bool) -> None:
    assert (problem_of(step(kind, mode, owner, group), is_way=is_way) is None) is is_safe


def acl(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *it) for it in entries)


OWNER = (0x01, 7, 0xFFFFFFFF)
MASK, OTHER = (0x10, 7, 0xFFFFFFFF), (0x20, 5, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("found", "group", "writer"),
    [
        pytest.param(acl(OWNER, (4, 5, 0), MASK, OTHER), 5, None, id="no member writes"),
        pytest.param(acl(OWNER, (2, 7, USER), (4, 5, 0), MASK, OTHER), 5, None, id="the user"),
        pytest.param(acl(OWNER, (2, 7, 0), (4, 5, 0), MASK, OTHER), 5, None, id="root"),
        pytest.param(acl(OWNER, (2, 7, 1001), (4, 5, 0), MASK, OTHER), 7, "user 1001", id="another user"),
        pytest.param(acl(OWNER, (2, 7, 1001), (4, 5, 0), (16, 5, 0), OTHER), 7, None, id="masked"),
        pytest.param(acl(OWNER, (2, 5, 1001), (4, 5, 0), MASK, OTHER), 7, None, id="another user who reads"),
        pytest.param(acl(OWNER, (4, 7, 0), MASK, OTHER), 5, "group 5", id="its group"),
        pytest.param(acl(OWNER, (4, 7, 0), MASK, OTHER), 7, None, id="its private group"),
        pytest.param(acl(OWNER, (4, 5, 0), (8, 7, 9), MASK, OTHER), 7, "group 9", id="another group"),
        pytest.param(acl(OWNER, (4, 5, 0), (8, 7, 7), MASK, OTHER), 5, None, id="the private group"),
        pytest.param(b"\x03\0\0\0", 7, "an unknown form", id="another version"),
        pytest.param(b"\x02\0\0\0\0", 7, "an unknown form", id="cut"),
        pytest.param(b"", 7, "an unknown form", id="empty"),
    ],
)
def test_access_control_lists_count(found: bytes, group: int, writer: str | None) -> None:
    reason = problem_of(step(DIRECTORY, 0o775, USER, group, found))

    assert writer in (reason or "") if writer else reason is None


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        pytest.param(
            step(FILE, 0o666),
            "/x can be written by others (yours, mode 0666); change that: chmod go-w /x",
            id="all",
        ),
        pytest.param(
            step(FILE, 0o664),
            "/x can be written by others (yours, mode 0664: group 5); change that: chmod go-w /x",
            id="group",
        ),
        pytest.param(
            step(DIRECTORY, 0o777, 0),
            "/x can be written by others (of root, mode 0777); change that: chmod go-w /x",
            id="of root",
        ),
        pytest.param(
            step(FILE, 0o644, 1001),
            "/x belongs to user 1001 (mode 0644), not to you or root; have its owner changed",
            id="owner",
        ),
    ],
)
def test_a_refusal_names_owner_and_mode_and_the_remedy(it: Step, expected: str) -> None:
    assert problem_of(it) == expected


def test_a_missing_file_is_not_refused(tmp_path: Path) -> None:
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


def test_the_directory_of_a_link_counts(tmp_path: Path) -> None:
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
    (tmp_path / "package/link.py").symlink_to("../other.py")
    (tmp_path / "other.py").write_text("")
    assert refusal_within(tmp_path / "package") is None

    (tmp_path / "other.py").chmod(0o666)

    assert "other.py can be written by others" in (refusal_within(tmp_path / "package") or "")


def test_file_that_vanishes_meanwhile_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").touch(0o666)
    (tmp_path / "there").chmod(0o666)
    monkeypatch.setattr(os, "walk", lambda path: [(str(path), [], ["gone", "there"])])

    assert f"{tmp_path}/there can be written" in (refusal_within(tmp_path) or "")


def test_dots_after_a_link_lead_from_where_the_link_does(tmp_path: Path) -> None:
    (tmp_path / "open/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("open/inner")
    (tmp_path / "open/file").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "open").chmod(0o777)

    assert "open can be written by others" in (refusal(f"{tmp_path}/link/../file") or "")


def test_directory_for_new_files_may_be_sticky(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    assert refusal(tmp_path, is_way=True) is None
    assert "can be written by others" in (refusal(tmp_path) or "")


def test_a_file_of_another_user_in_a_sticky_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a link of the name of the next step, which leads to what is ours."""
    (tmp_path / "sticky").mkdir()
    (tmp_path / "ours").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    (tmp_path / "sticky/jpsi").symlink_to(tmp_path / "ours")
    assert refusal(tmp_path / "sticky/jpsi/file") is None

    monkeypatch.setattr(ownership, "look", owned_by_another(tmp_path / "sticky/jpsi"))

    assert "jpsi belongs to user 4321" in (refusal(tmp_path / "sticky/jpsi/file") or "")


def owned_by_another(path: Path) -> Callable[[str], os.stat_result]:
    """Return an lstat(2) that reports another owner of this path."""

    def look(at: str) -> os.stat_result:
        found = os.lstat(at)
        return os.stat_result((*found[:4], 4321, *found[5:10])) if at == str(path) else found

    return look


def test_step_that_is_swapped_for_a_link_is_looked_at_as_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No user can replace a part that was checked; a part replaced before is checked as it is."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    def look(at: str) -> os.stat_result:
        if at == f"{tmp_path}/a" and not (tmp_path / "a").is_symlink():
            (tmp_path / "a").rename(tmp_path / "old")
            (tmp_path / "a").symlink_to("open")
        return os.lstat(at)

    monkeypatch.setattr(ownership, "look", look)

    assert "open can be written by others" in (refusal(tmp_path / "a/b") or "")
