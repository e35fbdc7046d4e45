"""The choice among installed plugins, and their requirements on the running core and engine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from jpsi.model.errors import PluginError
from jpsi.registry import versions
from jpsi.registry.candidate import EXECUTORS, FAKES, LAUNCHERS, TRANSPORTS, Candidate
from jpsi.registry.versions import choose, unmet_requirement, verdicts


def candidate(
    version: str,
    name: str = "torque",
    distribution: str = "jpsi-pbs",
    *,
    place: int = 0,
    refusal: str | None = None,
) -> Candidate:
    return Candidate(
        group=EXECUTORS,
        name=name,
        distribution=distribution,
        version=version,
        value=f"plugin_{name}",
        origin=f"/place/{place}" if place else None,
        place=place,
        refusal=refusal,
    )


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
def test_the_choice_does_not_depend_on_the_order_of_candidates(versions: list[str]) -> None:
    assert chosen(versions) == "0.10"


@pytest.mark.parametrize(("name", "installed"), [("PBS", "pbs"), ("pbs", "PBS"), ("Pbs", "pBS")])
def test_case_of_a_name_does_not_matter(name: str, installed: str) -> None:
    it = candidate("1", installed)

    assert choose([candidate("2", "slurm"), it], EXECUTORS, name, None) is it


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


def test_a_conflict_of_unsuitable_versions_is_ignored() -> None:
    installed = [candidate("2", distribution="a"), candidate("2", distribution="b"), candidate("1")]

    assert choose(installed, EXECUTORS, "torque", "< 2").version == "1"


def test_candidate_with_a_version_that_is_none_costs_others_nothing() -> None:
    """A checkout without history has such a version; no constraint selects it."""
    installed = [candidate("unknown", distribution="broken"), candidate("1")]

    assert choose(installed, EXECUTORS, "torque", ">= 1").version == "1"


def test_an_invalid_version_is_the_error_if_there_is_no_other_candidate() -> None:
    with pytest.raises(PluginError, match="unknown"):
        choose([candidate("unknown")], EXECUTORS, "torque", ">= 1")


def test_a_missing_version_is_reported_with_the_installed_ones() -> None:
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
        (EXECUTORS, "pbs", "no executor 'pbs'; installed: local, slurm; try: INSTALL jpsi-pbs"),
        (EXECUTORS, "PBS", "no executor 'PBS'; installed: local, slurm; try: INSTALL jpsi-pbs"),
        (EXECUTORS, "sge", "no executor 'sge'; installed: local, slurm; try: INSTALL jpsi-gridengine"),
        (EXECUTORS, "mine", "no executor 'mine'; installed: local, slurm"),
        (EXECUTORS, "Lcoal", "no executor 'Lcoal'; installed: local, slurm; did you mean 'local'?"),
        (LAUNCHERS, "slum", "no launcher 'slum'; installed: local, slurm; did you mean 'slurm'?"),
        (FAKES, "torque", "no fake 'torque'; installed: local, slurm; try: INSTALL jpsi-pbs"),
        (TRANSPORTS, "ssh", "no transport 'ssh'; installed: local, slurm; try: INSTALL jpsi-ssh"),
        (
            LAUNCHERS,
            "mpirun",
            "no launcher 'mpirun'; installed: local, slurm; try: INSTALL jpsi-launchers",
        ),
    ],
    ids=[
        "of this project",
        "in any case",
        "alias",
        "unknown",
        "close",
        "close launcher",
        "fake",
        "transport",
        "launcher",
    ],
)
def test_a_missing_plugin_is_reported_with_the_package_to_install(
    group: str, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "install_command", "INSTALL {}".format)
    installed = [candidate("1", "slurm"), candidate("1", "local"), candidate("2", "local")]

    with pytest.raises(PluginError) as caught:
        choose(installed, group, name, None)

    assert str(caught.value) == message


def test_configured_targets_may_have_been_meant() -> None:
    with pytest.raises(PluginError) as caught:
        choose([candidate("1", "kelp")], EXECUTORS, "reff", None, ["delta", "reef"])

    message = "no executor 'reff'; installed: kelp; targets: delta, reef; did you mean 'reef'?"
    assert str(caught.value) == message


def test_no_installed_plugin_is_reported() -> None:
    with pytest.raises(PluginError, match="no executor 'x'; installed: none"):
        choose([], EXECUTORS, "x", None)


def test_equal_versions_are_reported_with_their_directories() -> None:
    first, second = candidate("1.0", place=1), candidate("1", distribution="other", place=2)

    for order in ([first, second], [second, first]):
        assert choose(order, EXECUTORS, "torque", None) is first


def test_a_higher_version_has_precedence_over_an_earlier_directory() -> None:
    assert choose([candidate("1"), candidate("2", place=9)], EXECUTORS, "torque", None).place == 9


def test_a_conflict_in_a_later_directory_is_ignored() -> None:
    installed = [candidate("1"), candidate("1", place=1), candidate("1", distribution="b", place=1)]

    assert choose(installed, EXECUTORS, "torque", None).place == 0


def test_a_refused_candidate_is_not_chosen() -> None:
    installed = [candidate("2", refusal="no"), candidate("1")]

    assert choose(installed, EXECUTORS, "torque", None).version == "1"


@pytest.mark.parametrize("constraint", [None, ">= 1"])
def test_refusals_are_reported_if_there_is_no_other_candidate(constraint: str | None) -> None:
    installed = [candidate("2", place=1, refusal="it is cursed"), candidate("x")]

    with pytest.raises(PluginError) as caught:
        choose(installed, EXECUTORS, "torque", constraint)

    message = str(caught.value)
    assert "jpsi-pbs 2 in /place/1: it is cursed" in message
    assert "jpsi-pbs x: its version 'x' is not valid by PEP 440" in message


def test_verdicts_have_the_reasons_of_refusals() -> None:
    installed = [
        candidate("0.2", place=1),
        candidate("0.2"),
        candidate("0.1"),
        candidate("0.3rc1"),
        candidate("9"),
        candidate("what"),
        candidate("0.2", refusal="refused"),
    ]

    assert [why_not for _, why_not in verdicts(installed, "< 9")] == [
        "the same version comes earlier on the search path",
        None,
        "0.2 is higher",
        "it is a pre-release",
        "its version is not < 9",
        "its version 'what' is not valid by PEP 440",
        "refused",
    ]


def test_refusals_alone_are_no_conflict() -> None:
    refused = [candidate("1", refusal="a"), candidate("1", refusal="b")]

    assert verdicts(refused, None) == [(refused[0], "a"), (refused[1], "b")]


@pytest.mark.parametrize(
    ("requirement", "core", "is_unmet"),
    [
        ("jpsi-core", "1", False),
        ("jpsi-core>=1", "1", False),
        ("jpsi_core (>=2)", "1", True),
        ("JPSI.core [testing] ~=0.1", "1", True),
        ("jpsi-core>=1", "2.0.dev1", False),
        ("jpsi-core<2; python_version < '3'", "3", False),
        ("jpsi-core<2; python_version >= '3'", "3", True),
        ("jpsi-core<2; extra == 'test'", "3", False),
        ("jpsi-core-extras>=9", "1", False),
        ("numpy>=9", "1", False),
        ("jpsi-core>=9", None, False),
        ("jpsi-core>=9", "unknown", False),
        ("jpsi-core @ file:///x", "1", False),
    ],
)
def test_requirement(requirement: str, core: str | None, is_unmet: bool) -> None:
    running = {} if core is None else {"jpsi-core": core}

    assert (unmet_requirement(["other", requirement], running) is not None) is is_unmet


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        (["jpsi-core>=1,<2", "jpsi-engine>=3"], "it requires jpsi-engine>=3, but jpsi-engine 2.5 runs"),
        (["JPSI_Engine<2", "jpsi-core>=9"], "it requires JPSI_Engine<2, but jpsi-engine 2.5 runs"),
        (["jpsi-engine>=2", "jpsi-core>=9"], "it requires jpsi-core>=9, but jpsi-core 1.5 runs"),
        (["jpsi-engine>=2", "jpsi-core>=1", "jpsi-slurm>=9"], None),
    ],
)
def test_the_first_unmet_requirement_is_reported(requires: list[str], expected: str | None) -> None:
    assert unmet_requirement(requires, {"jpsi-core": "1.5", "jpsi-engine": "2.5"}) == expected


def test_an_invalid_requirement_is_reported() -> None:
    assert (
        unmet_requirement(["jpsi-core>>1"], {"jpsi-core": "1"})
        == "its requirement 'jpsi-core>>1' cannot be parsed"
    )


_RELEASES = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(
    lambda numbers: ".".join(map(str, numbers))
)


@given(version=_RELEASES, bounds=st.lists(st.tuples(st.sampled_from([">=", "<"]), _RELEASES), min_size=1))
def test_simple_bounds_agree_with_packaging(version: str, bounds: list[tuple[str, str]]) -> None:
    """They are compared without packaging, which takes longer to import than to find every plugin."""
    specifier = ",".join(operator + release for operator, release in bounds)

    is_unmet = unmet_requirement([f"jpsi-core{specifier}"], {"jpsi-core": version}) is not None

    assert is_unmet is not SpecifierSet(specifier).contains(version)
