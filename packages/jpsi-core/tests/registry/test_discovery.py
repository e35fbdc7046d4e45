"""Which of the installed plugins is meant."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importlib_metadata import EntryPoint

from jpsi.model.errors import PluginError
from jpsi.registry.discovery import EXECUTORS, LAUNCHERS, Candidate, candidates, choose, find


def candidate(version: str, name: str = "torque", distribution: str = "jpsi-pbs") -> Candidate:
    return Candidate(name, distribution, version, EntryPoint(name, f"plugin_{name}", EXECUTORS))


def chosen(versions: list[str], constraint: str | None = None) -> str:
    return choose([candidate(version) for version in versions], EXECUTORS, "torque", constraint).version


@pytest.mark.parametrize(
    ("versions", "constraint", "expected"),
    [
        (["0.1"], None, "0.1"),
        (["0.1", "0.2"], None, "0.2"),
        (["0.9", "0.10"], None, "0.10"),
        (["1.0", "1.0.post1"], None, "1.0.post1"),
        (["0.1", "0.2", "0.3"], "< 0.3", "0.2"),
        (["0.1", "0.2", "1.0"], ">= 0.2, < 1", "0.2"),
        (["0.1", "0.2"], "== 0.1", "0.1"),
        (["0.1.0", "0.1.4", "0.2"], "~= 0.1.0", "0.1.4"),
        (["0.1", "0.2"], "", "0.2"),
    ],
    ids=str,
)
def test_highest_version_that_fits_is_chosen(
    versions: list[str], constraint: str | None, expected: str
) -> None:
    assert chosen(versions, constraint) == expected


@pytest.mark.parametrize(
    ("versions", "constraint", "expected"),
    [
        (["0.1", "0.2rc1"], None, "0.1"),
        (["0.1", "0.2.dev3"], ">= 0.1", "0.1"),
        (["0.2a1", "0.2b1"], None, "0.2b1"),
        (["0.1", "0.3rc1"], "> 0.1", "0.3rc1"),
        (["0.1", "0.3rc1"], ">= 0.2", "0.3rc1"),
        (["0.1", "0.2rc1"], "== 0.2rc1", "0.2rc1"),
    ],
    ids=str,
)
def test_pre_release_is_chosen_only_if_nothing_else_fits(
    versions: list[str], constraint: str | None, expected: str
) -> None:
    assert chosen(versions, constraint) == expected


@given(st.permutations(["0.1", "0.2", "0.10", "1.0rc1", "0.2.1"]))
def test_choice_does_not_depend_on_the_order_of_what_is_installed(versions: list[str]) -> None:
    assert chosen(versions) == "0.10"


@pytest.mark.parametrize(("asked", "installed"), [("PBS", "pbs"), ("pbs", "PBS"), ("Pbs", "pBS")])
def test_case_of_a_name_does_not_matter(asked: str, installed: str) -> None:
    it = candidate("1", installed)

    assert choose([candidate("2", "slurm"), it], EXECUTORS, asked, None) is it


def test_name_is_no_prefix_of_another() -> None:
    it = candidate("1", "pbs")

    assert choose([candidate("2", "pbspro"), it], EXECUTORS, "pbs", None) is it


@pytest.mark.parametrize(
    ("one", "other"), [("1.0", "1.0"), ("1.0", "1.0.0"), ("1.0", "v1.0")], ids=["same", "longer", "prefixed"]
)
def test_equal_versions_are_a_conflict_that_names_both(one: str, other: str) -> None:
    """PEP 440 says which versions are equal, not their spelling."""
    installed = [candidate(one, distribution="jpsi-pbs"), candidate(other, distribution="my-pbs")]
    installed.append(candidate("0.9", distribution="old-pbs"))

    for order in (installed, installed[::-1]):
        with pytest.raises(PluginError, match="jpsi-pbs and my-pbs; uninstall one of them"):
            choose(order, EXECUTORS, "torque", None)


def test_names_that_differ_in_case_alone_are_a_conflict() -> None:
    installed = [candidate("1", "PBS", "one"), candidate("1", "pbs", "other")]

    with pytest.raises(PluginError, match="offered by one and other"):
        choose(installed, EXECUTORS, "pbs", None)


def test_conflict_of_versions_that_do_not_fit_is_none() -> None:
    installed = [candidate("2", distribution="a"), candidate("2", distribution="b"), candidate("1")]

    assert choose(installed, EXECUTORS, "torque", "< 2").version == "1"


def test_candidate_with_a_version_that_is_none_costs_others_nothing() -> None:
    """Of a checkout without history, say; whoever asks for it by constraint does not get it."""
    installed = [candidate("unknown", distribution="broken"), candidate("1")]

    assert choose(installed, EXECUTORS, "torque", ">= 1").version == "1"


def test_only_a_candidate_with_a_version_that_is_none_is_told_so() -> None:
    with pytest.raises(PluginError, match="unknown"):
        choose([candidate("unknown")], EXECUTORS, "torque", ">= 1")


def test_version_that_is_missing_is_told_with_those_that_are_there() -> None:
    with pytest.raises(PluginError) as caught:
        chosen(["0.1", "0.2"], ">= 1")

    assert str(caught.value) == "no executor 'torque' with version >= 1; installed: 0.1, 0.2"


@pytest.mark.parametrize("constraint", ["0.2", "newest", "=> 1", ">= x"])
def test_constraint_that_is_none_is_refused(constraint: str) -> None:
    """However many candidates there are."""
    with pytest.raises(ValueError, match="is not a version constraint such as"):
        chosen(["0.1"], constraint)


@pytest.mark.parametrize(
    ("group", "name", "message"),
    [
        (EXECUTORS, "pbs", "no executor 'pbs'; installed: local, slurm; try: pip install jpsi-pbs"),
        (EXECUTORS, "PBS", "no executor 'PBS'; installed: local, slurm; try: pip install jpsi-pbs"),
        (EXECUTORS, "sge", "no executor 'sge'; installed: local, slurm; try: pip install jpsi-gridengine"),
        (EXECUTORS, "mine", "no executor 'mine'; installed: local, slurm"),
        (
            LAUNCHERS,
            "mpirun",
            "no launcher 'mpirun'; installed: local, slurm; try: pip install jpsi-launchers",
        ),
    ],
    ids=["of this project", "in any case", "alias", "unknown", "launcher"],
)
def test_plugin_that_is_missing_is_told_with_what_to_install(group: str, name: str, message: str) -> None:
    installed = [candidate("1", "slurm"), candidate("1", "local"), candidate("2", "local")]

    with pytest.raises(PluginError) as caught:
        choose(installed, group, name, None)

    assert str(caught.value) == message


def test_nothing_installed_is_told() -> None:
    with pytest.raises(PluginError, match="no executor 'x'; installed: none"):
        choose([], EXECUTORS, "x", None)


# --------------------------------------------------------------------------- what is really installed


def install(directory: Path, distribution: str, version: str, entry_points: str) -> None:
    """Make a distribution out of its metadata alone."""
    info = directory / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that plugins are found in."""
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    return directory


def test_installed_plugins_are_found_and_not_imported(site: Path) -> None:
    module = f"never_imported_{random.randrange(10**9)}"
    install(site, "my-plugin", "1.2", f"[jpsi.executors]\nmine = {module}\nalias = {module}\n")

    found = {it.name: it for it in candidates(EXECUTORS)}

    assert {"local", "mine", "alias"} <= found.keys()
    assert (found["mine"].distribution, found["mine"].version) == ("my-plugin", "1.2")
    assert module not in sys.modules


def test_plugins_of_another_group_are_not_found(site: Path) -> None:
    install(site, "my-launchers", "1", "[jpsi.launchers]\nmine = mine\n")

    assert "mine" not in {it.name for it in candidates(EXECUTORS)}
    assert find(LAUNCHERS, "mine").distribution == "my-launchers"


def test_local_and_single_come_with_the_core() -> None:
    assert find(EXECUTORS, "LOCAL").distribution == "jpsi-core"
    assert find(LAUNCHERS, "single").distribution == "jpsi-core"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("def", "SyntaxError: "),
        (None, "ModuleNotFoundError: "),
    ],
    ids=["raises", "lacks a module", "no Python", "no module"],
)
def test_plugin_that_cannot_be_loaded_is_told_to_whoever_asks_for_it(
    site: Path, source: str | None, told: str
) -> None:
    """And to nobody else: finding it, and others, goes on."""
    module = f"broken_{random.randrange(10**9)}"
    if source is not None:
        (site / f"{module}.py").write_text(source)
    install(site, "my-plugin", "1.2", f"[jpsi.executors]\nbroken = {module}\n")

    it = find(EXECUTORS, "broken")
    with pytest.raises(PluginError) as caught:
        it.load()

    message = f"the plugin 'broken' of my-plugin 1.2 cannot be loaded: {told}"
    assert str(caught.value).startswith(message)
    assert caught.value.exception is caught.value.__cause__
    assert find(EXECUTORS, "local").name == "local"
