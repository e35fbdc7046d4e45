"""The translation of requirements to options, configured for executors and for targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi import ConfigError
from jpsi_jobspec.commands.arguments import Arguments
from jpsi_jobspec.commands.preparation import find_site
from jpsi_jobspec.planning.site import Mapped, configured_constraints

CONFIG = """\
constraints:
  Slurm:
    system.platform: slurm.constraint
    hardware.gpu: {option: slurm.constraint, value: "gpu-{match}", join: "&"}
  big:
    system.platform: slurm.features
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    (tmp_path / "jpsi").mkdir()
    return tmp_path / "jpsi"


def test_the_table_of_a_target_overrides_that_of_its_executor(folder: Path) -> None:
    (folder / "workflows.yaml").write_text(CONFIG)
    (folder / "config.yaml").write_text("targets: {big: {executor: slurm}}")
    typed = ("hardware.gpu=slurm.gres",)

    assert find_site(Arguments(file="f", executor="slurm")).constraints == {
        "system.platform": Mapped(option="slurm.constraint"),
        "hardware.gpu": Mapped(option="slurm.constraint", value="gpu-{match}", join="&"),
    }
    assert find_site(Arguments(file="f", executor="big", constraints=typed)).constraints == {
        "system.platform": Mapped(option="slurm.features"),
        "hardware.gpu": Mapped(option="slurm.gres"),
    }
    assert find_site(Arguments(file="f", executor="local")).constraints == {}


def test_without_a_file_the_table_is_empty(folder: Path) -> None:
    assert configured_constraints("slurm") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "cannot be read"),
        ("constraint: {}", "the key `constraints` alone"),
        ("constraints: [slurm]", "the key `constraints` alone"),
        ("constraints: {slurm: constraint}", "must be a mapping"),
        ("constraints: {slurm: {a.b: 3}}", "constraints.slurm.a.b must be an option"),
        ("constraints: {slurm: {a.b: {option: x, valeu: y}}}", "constraints.slurm.a.b must be an option"),
    ],
)
def test_a_problem_in_the_file_is_reported_with_its_position(text: str, message: str, folder: Path) -> None:
    (folder / "workflows.yaml").write_text(text)

    with pytest.raises(ConfigError, match=r"workflows\.yaml.*") as caught:
        configured_constraints("slurm")

    assert message in str(caught.value)
