"""Groups of several nodes, whose tasks run in a pilot in the group's allocation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobspec_support import planned
from jpsi import Job, JobExecutor, JobState, JobStatus
from jpsi_jobspec.document.shape import Shape
from jpsi_jobspec.planning.allocations import flatten, multinode_entries, slots_of_nodes
from jpsi_jobspec.planning.capacity import Capacity
from jpsi_jobspec.planning.engines import DASK, FLUX, find_unsupported_groups
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.run_store import journal as journals
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.journal import Journal
from jpsi_jobspec.running.driver import Driver

HEAD = """\
version: 1
resources:
  all: {type: node, count: 2, with: [{type: core, count: 2}]}
  one: {type: core, count: 1}
  node: {type: node, count: 1}
  both: {type: node, count: 2}
groups:
- name: g
  resources: all
  tasks:
"""
SLURM = Site(target="slurm")

Log = Callable[[], list[str]]


def run_inside(text: str, path: Path) -> tuple[int, Journal]:
    """Run a group by itself on two nodes, both this machine; `multiple` takes the place of srun."""
    file = path / "flow.yaml"
    file.write_text(text)
    journal = runs.create_run(str(file), text, Site(target="local"), {})
    command = [sys.executable, "-m", "jpsi_jobspec.group_supervisor", str(journal.path), "g"]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, timeout=300)
    (allocation,) = journal.plan.entries
    return done.returncode, journals.inner_journal(journal.path, allocation)


def pilot_journal(inside: Journal, what: str) -> list[dict[str, Any]]:
    """Return the journal that the pilot of a group has written."""
    lines = (inside.work / "pilots/journal").read_text().splitlines()
    return [it for it in map(json.loads, lines) if it["what"] == what]


def test_tasks_run_on_all_nodes_beside_local_ones(tmp_path: Path, log: Log) -> None:
    # each task waits for the others, for which one node has too few slots
    meet = "touch $JPSI_REPLICA; until [ -e 1 -a -e 2 -a -e 3 -a -e 4 ]; do sleep 0.1; done; echo $PPID"
    code, inside = run_inside(
        f"{HEAD}  - {{name: begin, local: true, command: kubectl}}\n"
        "  - {name: serve, local: true, service: true, command: [sleep, infinity]}\n"
        f"  - {{name: meet, command: [sh, -c, '{meet}'], resources: one, replicas: 4}}\n"
        "  - {name: bad, command: [sh, -c, ior; exit 3], resources: node, depends_on: [meet]}\n"
        "  - {name: end, local: true, command: spack}\n",
        tmp_path,
    )

    assert {name: {it.value for it in states} for name, states in inside.states.items()} == {
        "g/begin": {"COMPLETED"},
        "g/serve": {"CANCELED"},
        "g/meet": {"COMPLETED"},
        "g/bad": {"FAILED"},
        "g/end": {"COMPLETED"},
    }
    assert (code, inside.parts["g/bad"][0].exit_code) == (3, 3)
    # the pilot counts likewise: a task without a number of cores has those of a slot
    assert [it["need"]["cores"] for it in pilot_journal(inside, "submitted")] == [1, 2]
    assert [it.split()[3] for it in log() if it.startswith("begin")] == ["kubectl", "ior", "spack"]


def test_nodes_have_the_requested_slots_or_those_of_the_smallest_node() -> None:
    assert slots_of_nodes(Shape(nodes=2, slots=4), []) == (2, 2)
    assert slots_of_nodes(Shape(slots=5), []) == (5,)
    assert slots_of_nodes(Shape(slots=5), ["a"] * 5) == (5,)
    assert slots_of_nodes(Shape(slots=5), ["a", "a", "a", "b", "b"]) == (2, 2)


def test_a_task_needs_its_free_cores_on_one_node() -> None:
    """Two nodes with a free core each cannot run a task that needs two cores on one node."""
    text = (
        f"{HEAD}  - {{name: a, command: x, resources: one, replicas: 4}}\n"
        "  - {name: b, command: x, resources: node}\n"
    )
    (allocation,) = planned(text, SLURM).entries
    a, b = flatten(allocation)
    room = Capacity(allocation, (1, 1))

    # one on the first node, two on the second once the first is full
    assert [room.reserve(a, number) is not None for number in (1, 2, 3)] == [True, True, True]
    room.release(a, 1)
    assert room.reserve(b, 1) is None
    room.release(a, 2)
    assert room.reserve(b, 1) is not None


def test_a_task_on_several_nodes_fits_only_where_it_can_run() -> None:
    (allocation,) = planned(f"{HEAD}  - {{name: a, command: x, resources: both}}\n", SLURM).entries
    (entry,) = flatten(allocation)

    assert not Capacity(allocation, (1, 1)).can_ever_fit(entry)
    assert Capacity(allocation, (1, 1), can_span=True).reserve(entry, 1) is not None
    assert [it.id for it in multinode_entries(allocation)] == ["g/a"]


_LACKING = "has 2 nodes, which its tasks can use only by jpsi-pilot, dask and jpsi-launchers"
_WIDE = "has tasks that need several of its nodes each, which mpirun does not start: g/a"


@pytest.mark.parametrize(
    ("task", "engines", "launcher", "message"),
    [
        ("resources: one", {DASK}, "srun", ""),
        ("resources: one", set(), "srun", _LACKING),
        ("resources: one", {DASK}, "", _LACKING),
        ("resources: one", {DASK}, "mpirun", ""),
        ("resources: both", {DASK}, "srun", ""),
        ("resources: both", {DASK}, "mpirun", _WIDE),
        ("replicas: 2", {DASK}, "srun", ""),
        ("replicas: 2", {DASK}, "mpirun", _WIDE),
        ("resources: both", {FLUX}, "flux", ""),
        ("resources: both", {FLUX, DASK}, "mpirun", ""),
        ("local: true", {DASK}, "mpirun", ""),
        ("resources: both|one", {DASK}, "mpirun", ""),
    ],
)
def test_a_group_without_a_usable_engine_and_launcher_is_named(
    task: str, engines: set[str], launcher: str, message: str
) -> None:
    plan = planned(f"{HEAD}  - {{name: a, command: x, {task}}}\n", SLURM)

    found = list(find_unsupported_groups(plan, frozenset(engines), launcher))

    assert [(name, it, "jpsi-jobspec[groups]" in do) for name, it, do in found] == (
        [("g", message, message == _LACKING)] if message else []
    )


def test_a_local_service_takes_no_slots_of_its_group() -> None:
    text = f"{HEAD}  - {{name: s, local: true, service: true, command: x}}\n"
    (allocation,) = planned(text, SLURM).entries
    (service,) = flatten(allocation)

    assert service.shape is None


def test_no_entry_waits_for_the_end_of_a_group_of_services() -> None:
    text = (
        f"{HEAD}  - {{group: h}}\n  - {{name: a, command: x, resources: one, depends_on: [h]}}\n"
        "- {name: h, resources: one, tasks: [{name: s, service: true, command: x}]}\n"
    )

    (allocation,) = planned(text, SLURM).entries

    assert {it.id: it.after for it in flatten(allocation)} == {"g/h/s": (), "g/a": ()}


SERVICES = (
    f"{HEAD}  - {{name: s, resources: one, service: true, command: x}}\n"
    "  - {name: c, resources: one, command: x}\n"
    "  - {name: t, resources: one, service: true, command: x}\n"
    "  - {name: big, resources: node, command: x}\n"
)


def test_a_task_on_another_node_than_assumed_takes_its_share_of_that_node() -> None:
    """A pilot starts equal jobs together, here both services on one node."""
    (allocation,) = planned(SERVICES, SLURM).entries
    s, c, t, big = flatten(allocation)
    room = Capacity(allocation, (1, 1))
    for it in (s, c, t):
        room.reserve(it, 1)
    room.release(c, 1)

    assert room.reserve(big, 1) is None
    room.set_node(s, 1, "this")
    room.set_node(t, 1, "this")
    assert room.reserve(big, 1) is not None


def test_services_on_other_nodes_than_assumed_block_a_task() -> None:
    (allocation,) = planned(SERVICES, SLURM).entries
    s, _, t, big = flatten(allocation)
    room = Capacity(allocation, (1, 1))
    for it in (s, t, big):
        assert room.reserve(it, 1) is not None
    both = {(s.id, 1), (t.id, 1)}

    assert not room.is_blocked_by(both, big, 1)
    room.set_node(t, 1, "this")
    room.set_node(s, 1, "that")
    assert room.is_blocked_by(both, big, 1)
    assert not room.is_blocked_by({(s.id, 1)}, big, 1)


class FakePilot:
    """A pilot that has each service on a node of its own, and no free slots for other tasks."""

    def __init__(self) -> None:
        self._local = JobExecutor("local")
        self.system, self.files = self._local.system, self._local.files

    def set_job_status_callback(self, callback: Callable[[Job, JobStatus], None], /) -> None:
        self._callback = callback

    def recall(self, job_ids: Iterable[str]) -> list[Job]:
        return []

    def submit_many(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._callback(job, JobStatus(JobState.QUEUED if _task(job) == "g/big" else JobState.ACTIVE))

    def cancel_many(self, jobs: Iterable[Job], *, unmet: str = "") -> None:
        pass

    def info(self, job: Job) -> SimpleNamespace:
        return SimpleNamespace(details={"pilot.place": _task(job)})


def _task(job: Job) -> str | None:
    return ((job.spec and job.spec.environment) or {})["JPSI_TASK"]


def test_no_task_waits_forever_for_a_pilot_full_of_services(tmp_path: Path, log: Log) -> None:
    """The driver assumes both services on the first node."""
    text = "".join(it for it in SERVICES.splitlines(keepends=True) if "name: c," not in it)
    journal = runs.create_run("flow.yaml", text, Site(target="slurm"), {})
    (allocation,) = journal.plan.entries
    inside = journals.inner_journal(journal.path, allocation)

    Driver(inside, FakePilot(), lambda *_: None, Capacity(allocation, (1, 1))).run()

    assert {name: (it[0].state.value, it[0].reason) for name, it in inside.parts.items()} == {
        "g/s": ("CANCELED", "no_longer_needed"),
        "g/t": ("CANCELED", "no_longer_needed"),
        "g/big": ("FAILED", "room"),
    }


ONE_HOUR, TWO_HOURS = "attributes: {duration: 1h}", "attributes: {duration: 2h}"


def service(name: str) -> str:
    return (
        f"  - {{name: {name}, resources: one, service: true, command: [sh, -c, 'touch {name}; sleep 600']}}\n"
    )


def finite(name: str, more: str) -> str:
    """Return a task that ends once the services have begun."""
    wait = "until [ -e s -a -e t ]; do sleep 0.1; done"
    return f"  - {{name: {name}, resources: one, {more}, command: [sh, -c, '{wait}']}}\n"


@pytest.mark.parametrize(
    "tasks",
    [
        service("s") + service("t") + finite("a", ONE_HOUR),
        finite("a", ONE_HOUR) + service("s") + finite("b", TWO_HOURS) + service("t"),
    ],
    ids=["one", "two"],
)
def test_free_slots_follow_the_actual_nodes_of_services(tasks: str, tmp_path: Path, log: Log) -> None:
    """The pilot starts equal jobs together, in any order: services are on one node, or on both."""
    after = "[a, b]" if "name: b" in tasks else "[a]"
    _, inside = run_inside(
        f"{HEAD}{tasks}  - {{name: big, resources: node, command: ior, depends_on: {after}}}\n", tmp_path
    )

    started = {name: it["places"][0] for it in pilot_journal(inside, "started") for name in it["ids"]}
    # both services are one array
    places = {place for name, place in started.items() if "[" in name}
    (big,) = inside.parts["g/big"]
    expected = ("COMPLETED", None) if len(places) == 1 else ("FAILED", "room")
    assert (big.state.value, big.reason) == expected
    assert [inside.parts[f"g/{it}"][0].reason for it in "sat"] == [
        *("no_longer_needed", None, "no_longer_needed"),
    ]
