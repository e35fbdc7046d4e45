"""What runs when a document under examples is run: which programs, how often, and in which order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from jobspec_support import example
from jpsi_jobspec.planning.plan import Kind
from jpsi_jobspec.run_store import journal as journals
from jpsi_jobspec.run_store.journal import Journal


@attrs.frozen
class Ran:
    """A program, as a task of a document runs it."""

    task: str
    program: str
    replicas: int = 1
    #: How many processes each replica has, where there are as many nodes as the document asks for.
    processes: int = 1


@attrs.frozen
class Place:
    """How much of what a document asks for there is."""

    nodes: int
    #: Processes that ask for no nodes.
    slots: int
    replicas: int
    has_gpus: bool = False
    #: How many nodes a task in a group may have.
    nodes_of_a_task: int = 1


#: This machine stands for all nodes that there are.
HERE = Place(nodes=10**6, slots=10**6, replicas=10**6, has_gpus=True, nodes_of_a_task=10**6)
#: A batch system that is played has one node, and nothing that starts several processes.
PLAYED = Place(nodes=1, slots=1, replicas=3)

#: What each document runs: each list has ended before the next one begins.
RUNS: Mapping[str, Sequence[Sequence[Ran]]] = {
    "00-spack-and-ior": [
        [Ran("build", "spack install ior")],
        [Ran("ior", "spack load ior")],
        [Ran("ior", "ior -b 10g -O summaryFormat=json")],
    ],
    "01-setup-and-run": [],
    "02-stage-a-directory": [],
    "03-stage-a-file": [],
    # the second line is a parameter of the first: bash runs one
    "04-archive-by-hand": [[Ran("root", "flux-archive create -n kubeconfig -C ./home/dinosaur kubeconfig")]],
    "05-requires-mended": [[Ran("build", "spack install ior")]],
    "06-mini-mummi-mended": [
        [Ran("mini-mummi/mini-mummi-task-1", "kubectl apply -f ./task-queue.yaml")],
        [
            Ran("mini-mummi/train/train", "ml-train ... -o train.json", processes=2),
            Ran(
                *(
                    "mini-mummi/train/train",
                    "compspec save-artifact ./train.json --host http://localhost:8080",
                ),
                processes=2,
            ),
        ],
        [
            Ran(
                *("mini-mummi/test", "ml-test -o ./test.json --host http://localhost:8080"),
                replicas=20,
                processes=2,
            )
        ],
        [Ran("mini-mummi/mini-mummi-task-4", "kubectl delete -f ./task-queue.yaml")],
    ],
    "07-count": [[Ran("task-1", "echo hello world", replicas=4)]],
    "08-replicas": [[Ran("task-1", "echo hello world", replicas=4)]],
    "09-one-command": [[Ran("task-1", "spack install sqlite", processes=4)]],
    "10-three-commands": [
        [
            Ran("task-1", "spack install singularity"),
            Ran("task-2", "spack install mpich"),
            Ran("task-3", "spack install go"),
        ]
    ],
    "11-requires-of-a-resource": [[Ran("task-1", "spack install sqlite", processes=4)]],
    "12-duration": [[Ran("task-1", "spack install singularity")]],
    "13-environment": [[Ran("task-1", "spack install singularity")]],
    "14-cwd": [[Ran("task-1", "spack install singularity")]],
    "15-flags": [[Ran("task-1", "spack install singularity")]],
    "16-services-mended": [
        [Ran("ml-work/start", "kubectl apply -f ./database.yaml")],
        [
            Ran("ml-work/train", "ml-train ... -o train.json", replicas=100),
            Ran(
                *("ml-work/train", "compspec save-artifact ./train.json --host http://localhost:8080"),
                replicas=100,
            ),
        ],
        [Ran("ml-work/test", "ml-test -o ./test.json --host http://localhost:8080", replicas=10)],
        [Ran("ml-work/delete", "kubectl delete -f ./database.yaml")],
    ],
    "17-nested": [
        [Ran("machine-learning/machine-learning-task-1", "kubectl apply -f ./database.yaml")],
        [
            Ran("machine-learning/generate-data/generate-data-task-1", "machine learn things"),
            Ran("machine-learning/generate-data/eat-data", "munch munch munch"),
        ],
        [Ran("machine-learning/machine-learning-task-4", "kubectl delete -f ./database.yaml")],
    ],
}
#: What stands in a document and is of no machine, and the folder that stands for it.
PLACES = {
    "/tmp/path-for-workflow": "workflow",
    "/home/dinosaur/kubeconfig": "kubeconfig",
    "/opt/pennant/test/": "pennant",
}


def runnable(name: str, place: Place, folder: Path) -> str:
    """A document that asks for no more than there is, with folders of its own for those that it names."""
    text = example(name)
    for path, stand_in in PLACES.items():
        (folder / stand_in).mkdir(exist_ok=True)
        text = text.replace(path, str(folder / stand_in))
    # flux is a batch system here
    text = text.replace("flux archive", "flux-archive")
    if place is HERE:
        return text
    document = yaml.safe_load(text)
    content = document if isinstance(document, dict) else {}
    outer = {it["resources"] for it in content.get("groups", ())[:1]}
    for label, resource in content.get("resources", {}).items():
        is_shared = "groups" in content
        is_inside = is_shared and label not in outer
        fitted = attrs.evolve(place, nodes=place.nodes_of_a_task) if is_inside else place
        _fit(resource, fitted, is_shared=is_shared)
    for tasks in (content.get("tasks", ()), *(it["tasks"] for it in content.get("groups", ()))):
        for task in tasks:
            if "replicas" in task:
                task["replicas"] = min(task["replicas"], place.replicas)
    return yaml.safe_dump(document, sort_keys=False)


def _fit(resource: dict[str, Any], place: Place, *, is_shared: bool) -> None:
    for key, most in (("count", place.nodes), ("replicas", place.slots)):
        if key in resource:
            resource[key] = min(resource[key], most)
    held = resource.get("with", [])
    held = held if isinstance(held, list) else [held]
    if not place.has_gpus:
        cores = [it for it in held if it["type"] != "gpu"]
        held = cores or [{**it, "type": "core"} for it in held]
    if not held and is_shared and place.nodes == 1:
        # a node of its own would leave none for what runs beside it
        resource["type"] = "core"
    if held:
        resource["with"] = held


def check_order(name: str, place: Place, log: Sequence[str]) -> None:
    """See that all programs of a document ran, as often and in the order as it says."""
    rest = list(log)
    for runs in RUNS[name]:
        wanted = Counter[str]()
        for it in runs:
            nodes = place.nodes_of_a_task if "/" in it.task else place.nodes
            processes = min(it.processes, nodes)
            for replica in range(1, min(it.replicas, place.replicas if it.replicas > 1 else 1) + 1):
                wanted[f"{it.task} {replica} {it.program}"] += processes
        lines = 2 * wanted.total()
        began = Counter(began_as(it) for it in rest[:lines] if it.startswith("begin "))
        assert began == wanted
        rest = rest[lines:]
    assert rest == []


_LINE = re.compile(r"(begin|end) (?P<what>.*) of (?P<job>\S*) on (?P<node>\S*) in (?P<directory>.*)")


def began_as(line: str) -> str:
    """The task, its replica and the program of a line of the log."""
    match = _LINE.fullmatch(line)
    assert match is not None, line
    return match["what"]


def told(log: Sequence[str], what: str) -> list[tuple[str, str]]:
    """The task of each program that began, and in which directory, job or node that was."""
    lines = [_LINE.fullmatch(it) for it in log if it.startswith("begin ")]
    return [(it["what"].split()[0], it[what]) for it in lines if it is not None]


def check_ended(journal: Journal) -> None:
    """See that all has completed; services are ended with their group."""
    for run in (journal, *insides(journal)):
        entries = {it.id: it for it in run.plan.entries}
        for name, parts in run.parts.items():
            wanted = "CANCELED" if entries[name].kind is Kind.SERVICE else "COMPLETED"
            assert {it.state.value for it in parts} == {wanted}, (name, parts)


def insides(journal: Journal) -> list[Journal]:
    """What is on disk of the inside of each group."""
    groups = [it for it in journal.plan.entries if it.kind is Kind.ALLOCATION]
    return [journals.inner_journal(journal.path, it) for it in groups]
