"""What is read of distributions."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from distributions import lay
from jpsi.registry.metadata import distributions, of_path, parse_entry_points, parse_headers


def test_only_what_offers_something_is_found(tmp_path: Path) -> None:
    lay(tmp_path, "silent")
    lay(tmp_path, "speaking", "3", requires=["a", "b"], executors={"x": "y"})
    (tmp_path / "nothing-1.dist-info").mkdir()
    (tmp_path / "file-1.egg-info").write_text("")

    (found,) = distributions(str(tmp_path))

    assert (found.name, found.version, found.requires) == ("speaking", "3", ("a", "b"))


def test_egg_info_is_found(tmp_path: Path) -> None:
    info = tmp_path / "old.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: old\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[jpsi.executors]\nx = y\n")

    assert [it.name for it in distributions(str(tmp_path))] == ["old"]


def test_what_is_in_an_archive_is_found(tmp_path: Path) -> None:
    lay(tmp_path / "in", executors={"x": "y"})
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        for path in (tmp_path / "in").rglob("*"):
            archive.write(path, path.relative_to(tmp_path / "in"))

    assert [it.name for it in of_path([str(tmp_path / "app.pyz")])] == ["my-plugin"]


def test_directories_that_are_not_there_hold_nothing(tmp_path: Path) -> None:
    assert of_path([str(tmp_path / "none"), str(tmp_path), str(tmp_path)]) == []


def test_metadata_that_is_missing_is_no_reason_to_fail(tmp_path: Path) -> None:
    lay(tmp_path, executors={"x": "y"})
    (tmp_path / "my_plugin-1.2.dist-info/METADATA").unlink()

    assert [it.version for it in distributions(str(tmp_path))] == ["unknown"]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    list(parse_entry_points(text))
    parse_headers(text)


def test_comments_and_spaces_are_none_of_a_name() -> None:
    text = "# c\n[ jpsi.executors ]\n; c\n a=b \n\n c = d:e [x]\nnonsense\n"

    assert [(it.group, it.name, it.value) for it in parse_entry_points(text)] == [
        ("jpsi.executors", "a", "b"),
        ("jpsi.executors", "c", "d:e [x]"),
    ]
