"""The metadata of distributions."""

from __future__ import annotations

import errno
import os
import tempfile
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributions import lay
from jpsi.registry import metadata
from jpsi.registry.metadata import Distribution, distributions, install_command, installer, of_path
from jpsi_testing.threads import in_this_thread


def test_only_distributions_with_entry_points_are_found(tmp_path: Path) -> None:
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


def test_distributions_in_an_archive_are_found(tmp_path: Path) -> None:
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


def test_what_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, executors={"x": "y"})
    first = distributions(str(tmp_path))
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("it is read again"))

    assert distributions(str(tmp_path)) == first


def test_what_could_not_be_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may have too many files open for a moment."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    lay(tmp_path, executors={"x": "y"})
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", fail)
        assert distributions(str(tmp_path)) == []

    assert [it.name for it in distributions(str(tmp_path))] == ["my-plugin"]


@pytest.mark.parametrize(
    ("file", "text"),
    [("entry_points.txt", "[jpsi.executors]\nother = z\n"), ("METADATA", "Name: my-plugin\nVersion: 33\n")],
)
def test_changed_metadata_is_read_again(tmp_path: Path, file: str, text: str) -> None:
    lay(tmp_path, executors={"x": "y"})
    first = distributions(str(tmp_path))

    (tmp_path / "my_plugin-1.2.dist-info" / file).write_text(text)

    (found,) = distributions(str(tmp_path))
    assert [found] != first
    assert (found.version, found.entry_points[0].name) in {("1.2", "other"), ("33", "x")}


def test_removed_entry_points_are_found_no_more(tmp_path: Path) -> None:
    lay(tmp_path, executors={"x": "y"})
    assert len(distributions(str(tmp_path))) == 1

    (tmp_path / "my_plugin-1.2.dist-info/entry_points.txt").unlink()

    assert distributions(str(tmp_path)) == []


@given(entry_points=st.binary(), metadata=st.binary(), has_group=st.booleans())
def test_any_text_is_read(entry_points: bytes, metadata: bytes, has_group: bool) -> None:
    """Whatever stands in one distribution, the one beside it is found."""
    with tempfile.TemporaryDirectory() as place:
        info = Path(place, "any-1.dist-info")
        info.mkdir()
        (info / "entry_points.txt").write_bytes(b"[jpsi.executors]\n" * has_group + entry_points)
        (info / "METADATA").write_bytes(metadata)
        lay(Path(place), executors={"x": "y"})

        assert "my-plugin" in {it.name for it in distributions(place)}


@pytest.mark.parametrize("separator", ["\n", "\r\n"])
def test_comments_and_spaces_are_none_of_a_name(tmp_path: Path, separator: str) -> None:
    lines = [
        "# c",
        "[ jpsi.executors ]",
        "; c = d",
        " a=b ",
        "",
        " c = d:e [x]",
        "nonsense",
        "= x",
        "\x0b= y",
    ]

    (found,) = read(tmp_path, entry_points=separator.join(lines).encode())

    assert [(it.group, it.name, it.value) for it in found.entry_points] == [
        ("jpsi.executors", "a", "b"),
        ("jpsi.executors", "c", "d:e [x]"),
    ]


def test_value_that_is_no_reference_hides_no_other(tmp_path: Path) -> None:
    """Most releases of importlib-metadata raise an error for a program that reads it."""
    text = b"[other]\nx = not a module\n[jpsi.executors]\nbad = !\na = b:c.d [e]\n"

    (found,) = read(tmp_path, entry_points=text)

    assert ("a", "b:c.d [e]") in {(it.name, it.value) for it in found.entry_points}


def test_requirement_on_several_lines_is_one(tmp_path: Path) -> None:
    metadata = b"Name: x\nVersion: 1\nRequires-Dist: a\nRequires-Dist: b;\n  python_version>'3'\n\nName: y\n"

    (found,) = read(tmp_path, metadata=metadata)

    assert (found.name, found.requires) == ("x", ("a", "b; python_version>'3'"))


def test_text_that_is_not_utf_8_is_read(tmp_path: Path) -> None:
    metadata = "Name: x\nAuthor: J\u00fcrgen\nVersion: 3\n".encode("latin-1")

    (found,) = read(tmp_path, metadata=metadata)

    assert found.version == "3"


def read(
    directory: Path,
    entry_points: bytes = b"[jpsi.executors]\na = b\n",
    metadata: bytes = b"Name: x\nVersion: 1\n",
) -> list[Distribution]:
    """Return what is found where one distribution has these files."""
    info = directory / "x-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_bytes(entry_points)
    (info / "METADATA").write_bytes(metadata)
    return distributions(str(directory))


def test_core_is_found_though_it_offers_nothing(tmp_path: Path) -> None:
    """The requirements of other distributions on it are checked."""
    lay(tmp_path, "jpsi-core", "7")
    lay(tmp_path, "jpsi_engine", "8")

    found = {it.name: (it.version, it.entry_points) for it in distributions(str(tmp_path))}

    assert found == {"jpsi-core": ("7", ()), "jpsi_engine": ("8", ())}


CLONE = Path(__file__).parents[4]


@pytest.mark.parametrize(
    "path",
    ["packages/jpsi-core", "dist/jpsi_core-0.2.0-py3-none-any.whl", ".nox/wheels/jpsi_core-0.2.0.whl"],
    ids=["folder of the package", "built wheel", "hidden wheel"],
)
def test_what_came_from_a_clone_is_installed_by_the_clone(path: str) -> None:
    assert installer((CLONE / path).as_uri()) == [f"{CLONE}/dev", "install"]


def test_what_came_from_a_wheel_is_installed_from_its_folder() -> None:
    origin = "file:///site/my%20wheels/jpsi_core-0.2.0-py3-none-any.whl"

    assert installer(origin) == ["pip", "install", "--find-links", "/site/my wheels"]


@pytest.mark.parametrize("origin", ["", "https://wheels.example/jpsi_core-0.2.0-py3-none-any.whl"])
def test_of_what_came_by_its_name_the_user_knows_the_folder(origin: str) -> None:
    assert installer(origin) == ["pip", "install", "--find-links", "DIRECTORY"]


def test_words_are_quoted_for_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package with that URL hides the one that the tests run with."""
    metadata = tmp_path / "jpsi_core-0.2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: jpsi-core\nVersion: 0.2.0\n")
    (metadata / "direct_url.json").write_text('{"url": "file:///my%20wheels/jpsi_core.whl"}')
    monkeypatch.syspath_prepend(str(tmp_path))

    assert install_command("jpsi-cli[top]") == "pip install --find-links '/my wheels' 'jpsi-cli[top]'"


def test_a_package_without_a_url_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "jpsi_core-0.2.0.dist-info"
    metadata.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    assert install_command("jpsi-ssh") == "pip install --find-links DIRECTORY jpsi-ssh"


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the listings of directories that are made from now on."""
    found: list[list[str]] = []
    listdir = os.listdir

    def noted(directory: int) -> list[str]:
        found.append(listdir(directory))
        return found[-1]

    monkeypatch.setattr(os, "listdir", in_this_thread(noted, listdir))
    return found


def test_a_directory_is_listed_again_once_it_has_changed(
    tmp_path: Path, listings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if the last change were long ago
    monkeypatch.setattr(metadata, "_SETTLED_SECONDS", -1.0)
    lay(tmp_path, "one", executors={"x": "y"})
    (tmp_path / "result").touch()

    assert [[it.name for it in distributions(str(tmp_path))] for _ in range(2)] == [["one"], ["one"]]
    assert len(listings) == 1
    lay(tmp_path, "two", executors={"x": "y"})
    assert {it.name for it in distributions(str(tmp_path))} == {"one", "two"}
    assert len(listings) == 2
    # a program may write thousands of files beside its script
    assert metadata._listed[str(tmp_path)].folders.keys() == {"one", "two"}


def test_a_directory_that_changed_a_moment_ago_is_listed_each_time(
    tmp_path: Path, listings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next change may give it the same times."""
    monkeypatch.setattr(metadata, "_SETTLED_SECONDS", 3600.0)
    lay(tmp_path, "one", executors={"x": "y"})

    for _ in range(2):
        distributions(str(tmp_path))

    assert len(listings) == 2


def test_a_directory_whose_clock_is_ahead_is_listed_each_time(
    tmp_path: Path, listings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "_SETTLED_SECONDS", 0.0)
    lay(tmp_path, "one", executors={"x": "y"})
    os.utime(tmp_path, (time.time() + 3600,) * 2)

    for _ in range(2):
        distributions(str(tmp_path))

    assert len(listings) == 2
