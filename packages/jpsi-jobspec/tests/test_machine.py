"""The hardware of this machine, and the alternatives that it rules out for local runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobspec_support import entries, example, found, planned
from jpsi_jobspec import planning
from jpsi_jobspec.commands import preparation
from jpsi_jobspec.commands.arguments import Arguments
from jpsi_jobspec.planning.site import Machine, Site, this_machine
from jpsi_jobspec.run_store import runs

HEAD = """\
version: 1
resources:
  fast: {type: node, count: 1, with: [{type: gpu, count: 2}]}
  large: {type: node, count: 1, with: [{type: memory, size: 8GB}]}
  plain: {type: node, count: 1}
  whole: {type: node, count: 1, with: [{type: core, count: 4}, {type: gpu, count: 2}]}
"""
PLAIN = Machine(gpus=0, memory=4 * 2**30)


def here(machine: Machine | None) -> Site:
    return Site(is_one_machine=True, machine=machine)


@pytest.mark.clause("ng-or")
@pytest.mark.parametrize(
    ("has", "resources", "taken"),
    [
        (PLAIN, "fast|plain", ["plain"]),
        (PLAIN, "large|fast|plain", ["plain"]),
        (Machine(gpus=2, memory=None), "fast|plain", ["fast", "plain"]),
        (Machine(gpus=1, memory=None), "fast|plain", ["plain"]),
        (Machine(gpus=None, memory=None), "fast|plain", ["fast", "plain"]),
        (None, "fast|plain", ["fast", "plain"]),
        # there is no alternative: processes can be tried without
        (PLAIN, "fast", ["fast"]),
    ],
    ids=["no gpus", "memory", "enough", "too few", "unknown", "remote", "no choice"],
)
@pytest.mark.parametrize("where", ["top", "group"])
def test_alternatives_with_missing_hardware_are_left_out(
    where: str, has: Machine | None, resources: str, taken: list[str]
) -> None:
    tasks = f"tasks: [{{name: t, command: a, resources: {resources}}}]"
    text = (
        f"{HEAD}{tasks}\n" if where == "top" else f"{HEAD}groups: [{{name: g, resources: whole, {tasks}}}]\n"
    )

    entry = entries(planned(text, here(has)))["t" if where == "top" else "g/t"]

    assert entry.resources == taken[0]
    if where == "group":
        assert [entry.resources, *(name for name, _ in entry.others)] == taken
    left_out = [it for it in entry.why if "is left out: this machine has" in it]
    assert len(left_out) == len(resources.split("|")) - (1 if taken[0] == "plain" else len(taken))


def test_a_document_is_refused_if_the_machine_has_none_of_its_alternatives() -> None:
    (problem,) = found(f"{HEAD}tasks: [{{command: a, resources: fast|large}}]\n", site=here(PLAIN))

    assert (problem.code, problem.is_error) == ("JS090", True)
    assert (
        "'fast' is left out: this machine has 0 GPUs of 2; 'large' is left out: this machine has"
        in problem.says
    )


@pytest.mark.parametrize(
    ("machine", "notes"),
    [(PLAIN, ("this machine has 0 GPUs of 2, and it runs here all the same",)), (None, ())],
)
def test_missing_hardware_is_a_note_without_an_alternative(
    machine: Machine | None, notes: tuple[str, ...]
) -> None:
    plan = planned(f"{HEAD}tasks: [{{name: t, command: a, resources: fast}}]\n", here(machine))

    assert entries(plan)["t"].lost == notes


def test_the_example_uses_the_available_hardware() -> None:
    plan = planned(example("06-mini-mummi-mended"), here(PLAIN))

    assert entries(plan)["mini-mummi/test"].resources == "mummi-cpu"


def test_devices_are_counted(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).touch()
    for number, simd in enumerate((0, 304)):
        node = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count {simd}\n")

    assert this_machine(tmp_path).gpus == 3


def test_devices_behind_another_one_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dxg").touch()

    assert this_machine(tmp_path).gpus is None


def test_a_machine_without_devices_has_none(tmp_path: Path) -> None:
    found = this_machine(tmp_path)

    assert found.gpus == 0
    assert found.memory is not None


def test_the_hardware_of_the_machine_is_detected_when_a_document_is_read(
    tmp_path: Path, log: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "this_machine", lambda: PLAIN)

    assert preparation.find_site(Arguments(file="x", executor="local")).machine == PLAIN
    assert preparation.find_site(Arguments(file="x", executor="slurm")).machine is None


def test_a_run_continues_with_the_hardware_that_it_began_with(tmp_path: Path, log: object) -> None:
    text = f"{HEAD}tasks: [{{name: t, command: a, resources: fast|plain}}]\n"
    file = tmp_path / "flow.yaml"

    journal = runs.create_run(str(file), text, here(PLAIN), {})

    assert runs.read_run(journal.path).plan.entries[0].resources == "plain"
