"""The plugins in the environment and on the plugin path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from distributions import lay
from jpsi.model.errors import PluginError
from jpsi.registry.candidate import ENGINES, EXECUTORS, LAUNCHERS, Candidate
from jpsi.registry.discovery import Plugins, installed


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a directory of the environment."""
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    return directory


@pytest.mark.clause("python-side-loading", "python-install-is-enough")
def test_installed_plugins_are_found_and_not_imported(site: Path) -> None:
    lay(site, executors={"mine": "never_imported", "alias": "never_imported", "other": "never_imported:x"})

    found = {it.name: it for it in installed().of(EXECUTORS)}

    assert {"local", "mine", "alias", "other"} <= found.keys()
    assert (found["mine"].distribution, found["mine"].version) == ("my-plugin", "1.2")
    assert found["mine"].aliases == ("mine", "alias")
    assert found["other"].aliases == ("other",)
    assert found["mine"].origin is None
    assert "never_imported" not in sys.modules


@pytest.mark.clause("python-path")
def test_only_the_first_of_several_versions_on_the_python_path_is_found(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(site, version="2.0", executors={"mine": "never_imported"})
    lay(tmp_path / "before", version="1.0", executors={"mine": "never_imported"})
    monkeypatch.syspath_prepend(str(tmp_path / "before"))

    assert [it.version for it in installed().of(EXECUTORS) if it.name == "mine"] == ["1.0"]


def test_plugins_of_another_group_are_not_found(site: Path) -> None:
    lay(site, launchers={"mine": "mine"})

    assert "mine" not in {it.name for it in installed().of(EXECUTORS)}
    assert installed().find(LAUNCHERS, "mine").distribution == "my-plugin"


def test_local_and_single_are_plugins_of_the_engine() -> None:
    assert installed().find(EXECUTORS, "LOCAL").distribution == "jpsi-engine"
    assert installed().find(LAUNCHERS, "single").distribution == "jpsi-engine"


def test_directories_have_places_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        lay(tmp_path / name, executors={"mine": "mine"})
    monkeypatch.setenv("JPSI_PLUGIN_PATH", os.pathsep.join([f"{tmp_path}/b", "", f"{tmp_path}/none"]))

    found = installed([tmp_path / "d", tmp_path / "c", tmp_path / "b"]).named(EXECUTORS, "mine")

    assert [it.origin for it in found] == [f"{tmp_path}/{name}" for name in "bdc"]
    assert [it.place for it in found] == sorted(it.place for it in found)


def test_directory_of_the_environment_is_no_place_of_its_own(site: Path) -> None:
    lay(site, executors={"mine": "mine"})

    (it,) = installed([site]).named(EXECUTORS, "mine")

    assert it.origin is None


def test_first_distribution_of_a_name_hides_others_in_the_environment(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports do so, too: the first one counts, with or without plugins."""
    lay(site, "My.Plugin", "2", executors={"mine": "mine"})
    (tmp_path / "front/my_plugin-1.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "front"))

    assert installed().named(EXECUTORS, "mine") == []


def test_two_versions_in_one_directory_are_refused(tmp_path: Path) -> None:
    """Pip adds the second one's metadata, and leaves the first one's files."""
    for version in ("1", "2"):
        lay(tmp_path, version=version, executors={"mine": "mine"})

    with pytest.raises(PluginError, match="has my-plugin 1 and 2, but files of one version; remove all"):
        installed([tmp_path]).find(EXECUTORS, "mine")


def test_duplicate_metadata_counts_once(tmp_path: Path) -> None:
    lay(tmp_path, executors={"mine": "mine"})
    info = tmp_path / "my_plugin.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: my-plugin\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[jpsi.executors]\nmine = mine\n")

    assert installed([tmp_path]).find(EXECUTORS, "mine").version == "1.2"


@pytest.mark.parametrize(
    ("requirement", "is_refused"),
    [
        ("jpsi-core>=99", True),
        ("JPSI_Core<99", False),
        ("jpsi-core>=99; extra == 'x'", False),
        ("jpsi-engine>=99", True),
        ("jpsi-engine<99", False),
    ],
)
def test_requirement_of_another_core_or_engine_is_a_refusal(
    tmp_path: Path, requirement: str, is_refused: bool
) -> None:
    lay(tmp_path, requires=[requirement], executors={"mine": "mine"})

    (it,) = installed([tmp_path]).named(EXECUTORS, "mine")

    assert (it.refusal is not None) is is_refused


def test_the_first_version_in_the_environment_runs(site: Path, tmp_path: Path) -> None:
    lay(site, "jpsi_core", "7.1")
    lay(site, "Jpsi.Engine", "7.2")
    lay(tmp_path, "jpsi-core", "8.1")
    lay(tmp_path, "jpsi-engine", "8.2", engines={"batch": "mine"}, executors={"local": "mine"})

    found = installed([tmp_path])

    assert found.running == {"jpsi-core": "7.1", "jpsi-engine": "7.2"}
    assert not [it for it in found.candidates if it.origin is not None]


def test_engine_that_is_too_old_for_the_core_is_refused(site: Path) -> None:
    lay(site, "jpsi-core", "7.1")
    lay(site, "jpsi-engine", "6.9", requires=["jpsi-core>=6.9,<7"], engines={"batch": "mine"})

    with pytest.raises(
        PluginError,
        match=r"no engine 'batch' that can be used; installed: 6\.9\n"
        r"  - jpsi-engine 6\.9: it requires jpsi-core>=6\.9,<7, but jpsi-core 7\.1 runs",
    ):
        installed().find(ENGINES, "batch")


@pytest.mark.parametrize("path", ["mine/deep/down.py", "mine/deep", "my_plugin-1.2.dist-info/RECORD", "."])
def test_files_that_others_may_write_to_are_refused(tmp_path: Path, path: str) -> None:
    lay(tmp_path, files={"mine/__init__.py": "", "mine/deep/down.py": ""}, executors={"mine": "mine"})
    assert installed([tmp_path]).named(EXECUTORS, "mine")[0].refusal is None

    (tmp_path / path).chmod(0o666 | (tmp_path / path).stat().st_mode)

    refusal = installed([tmp_path]).named(EXECUTORS, "mine")[0].refusal
    assert refusal is not None
    assert f"{tmp_path / path} can be written by others" in refusal


def test_the_error_for_a_missing_plugin_names_the_installed_ones() -> None:
    with pytest.raises(PluginError, match=r"no executor 'x'; installed: .*local"):
        installed().find(EXECUTORS, "x")


def test_no_plugins_at_all_are_reported() -> None:
    with pytest.raises(PluginError, match="no executor 'x'; installed: none"):
        Plugins(()).find(EXECUTORS, "x")


@pytest.mark.parametrize(
    ("names", "value", "expected"),
    [
        (("sge", "gridengine"), "jpsi_gridengine", "gridengine"),
        (("pbs_classic", "torque"), "jpsi_pbs.torque:hooks", "torque"),
        (("b", "a"), "other", "a"),
        ((), "other", "mine"),
    ],
)
def test_aliases_are_listed_under_one_name(names: tuple[str, ...], value: str, expected: str) -> None:
    it = Candidate(group=EXECUTORS, name="mine", aliases=names, distribution="d", version="1", value=value)

    assert it.canonical == expected
