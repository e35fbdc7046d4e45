"""The programs that each document under examples runs: how often, and in which order."""

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
class ProgramRun:
    """A program that a task of a document runs."""

    task: str
    program: str
    replicas: int = 1
    #: The processes of each replica, if there are as many nodes as the document requests.
    processes: int = 1


@attrs.frozen
class SystemSize:
    """The part of a document's requests that a system can satisfy."""

    nodes: int
    #: The limit for processes that request no nodes.
    slots: int
    replicas: int
    has_gpus: bool = False
    #: The limit for nodes of a task in a group.
    nodes_of_a_task: int = 1


#: This machine takes the place of all nodes.
LOCAL_SIZE = SystemSize(nodes=10**6, slots=10**6, replicas=10**6, has_gpus=True, nodes_of_a_task=10**6)
#: A fake batch system has one node, and no launcher for several processes.
FAKE_SIZE = SystemSize(nodes=1, slots=1, replicas=3)

#: The programs of each document: all of a list end before the next list begins.
RUNS: Mapping[str, Sequence[Sequence[ProgramRun]]] = {
    "00-spack-and-ior": [
        [ProgramRun("build", "spack install ior")],
        [ProgramRun("ior", "spack load ior")],
        [ProgramRun("ior", "ior -b 10g -O summaryFormat=json")],
    ],
    "01-setup-and-run": [],
    "02-stage-a-directory": [],
    "03-stage-a-file": [],
    # the second line is a parameter of the first: bash runs one program
    "04-archive-by-hand": [
        [ProgramRun("root", "flux-archive create -n kubeconfig -C ./home/dinosaur kubeconfig")]
    ],
    "05-requires-mended": [[ProgramRun("build", "spack install ior")]],
    "06-mini-mummi-mended": [
        [ProgramRun("mini-mummi/mini-mummi-task-1", "kubectl apply -f ./task-queue.yaml")],
        [
            ProgramRun("mini-mummi/train/train", "ml-train ... -o train.json", processes=2),
            ProgramRun(
                *(
                    "mini-mummi/train/train",
                    "compspec save-artifact ./train.json --host http://localhost:8080",
                ),
                processes=2,
            ),
        ],
        [
            ProgramRun(
                *("mini-mummi/test", "ml-test -o ./test.json --host http://localhost:8080"),
                replicas=20,
                processes=2,
            )
        ],
        [ProgramRun("mini-mummi/mini-mummi-task-4", "kubectl delete -f ./task-queue.yaml")],
    ],
    "07-count": [[ProgramRun("task-1", "echo hello world", replicas=4)]],
    "08-replicas": [[ProgramRun("task-1", "echo hello world", replicas=4)]],
    "09-one-command": [[ProgramRun("task-1", "spack install sqlite", processes=4)]],
    "10-three-commands": [
        [
            ProgramRun("task-1", "spack install singularity"),
            ProgramRun("task-2", "spack install mpich"),
            ProgramRun("task-3", "spack install go"),
        ]
    ],
    "11-requires-of-a-resource": [[ProgramRun("task-1", "spack install sqlite", processes=4)]],
    "12-duration": [[ProgramRun("task-1", "spack install singularity")]],
    "13-environment": [[ProgramRun("task-1", "spack install singularity")]],
    "14-cwd": [[ProgramRun("task-1", "spack install singularity")]],
    "15-flags": [[ProgramRun("task-1", "spack install singularity")]],
    "16-services-mended": [
        [ProgramRun("ml-work/start", "kubectl apply -f ./database.yaml")],
        [
            ProgramRun("ml-work/train", "ml-train ... -o train.json", replicas=100),
            ProgramRun(
                *("ml-work/train", "compspec save-artifact ./train.json --host http://localhost:8080"),
                replicas=100,
            ),
        ],
        [ProgramRun("ml-work/test", "ml-test -o ./test.json --host http://localhost:8080", replicas=10)],
        [ProgramRun("ml-work/delete", "kubectl delete -f ./database.yaml")],
    ],
    "17-nested": [
        [ProgramRun("machine-learning/machine-learning-task-1", "kubectl apply -f ./database.yaml")],
        [
            ProgramRun("machine-learning/generate-data/generate-data-task-1", "machine learn things"),
            ProgramRun("machine-learning/generate-data/eat-data", "munch munch munch"),
        ],
        [ProgramRun("machine-learning/machine-learning-task-4", "kubectl delete -f ./database.yaml")],
    ],
}
#: Paths in the documents that exist on no machine, and the folders that replace them.
REPLACED_PATHS = {
    "/tmp/path-for-workflow": "workflow",
    "/home/dinosaur/kubeconfig": "kubeconfig",
    "/opt/pennant/test/": "pennant",
}


def runnable(name: str, size: SystemSize, folder: Path) -> str:
    """Return a document that requests no more than there is, with folders of the test's own."""
    text = example(name)
    for path, replacement in REPLACED_PATHS.items():
        (folder / replacement).mkdir(exist_ok=True)
        text = text.replace(path, str(folder / replacement))
    # flux is a batch system in these tests
    text = text.replace("flux archive", "flux-archive")
    if size is LOCAL_SIZE:
        return text
    document = yaml.safe_load(text)
    content = document if isinstance(document, dict) else {}
    outer = {it["resources"] for it in content.get("groups", ())[:1]}
    for label, resource in content.get("resources", {}).items():
        is_shared = "groups" in content
        is_inside = is_shared and label not in outer
        fitted = attrs.evolve(size, nodes=size.nodes_of_a_task) if is_inside else size
        _fit(resource, fitted, is_shared=is_shared)
    for tasks in (content.get("tasks", ()), *(it["tasks"] for it in content.get("groups", ()))):
        for task in tasks:
            if "replicas" in task:
                task["replicas"] = min(task["replicas"], size.replicas)
    return yaml.safe_dump(document, sort_keys=False)


def _fit(resource: dict[str, Any], size: SystemSize, *, is_shared: bool) -> None:
    for key, most in (("count", size.nodes), ("replicas", size.slots)):
        if key in resource:
            resource[key] = min(resource[key], most)
    held = resource.get("with", [])
    held = held if isinstance(held, list) else [held]
    if not size.has_gpus:
        cores = [it for it in held if it["type"] != "gpu"]
        held = cores or [{**it, "type": "core"} for it in held]
    if not held and is_shared and size.nodes == 1:
        # a node of its own would leave none for concurrent tasks
        resource["type"] = "core"
    if held:
        resource["with"] = held


def check_order(name: str, size: SystemSize, log: Sequence[str]) -> None:
    """Check that all programs of a document ran, as often and in the order that it says."""
    rest = list(log)
    for runs in RUNS[name]:
        expected = Counter[str]()
        for it in runs:
            nodes = size.nodes_of_a_task if "/" in it.task else size.nodes
            processes = min(it.processes, nodes)
            for replica in range(1, min(it.replicas, size.replicas if it.replicas > 1 else 1) + 1):
                expected[f"{it.task} {replica} {it.program}"] += processes
        lines = 2 * expected.total()
        began = Counter(began_as(it) for it in rest[:lines] if it.startswith("begin "))
        assert began == expected
        rest = rest[lines:]
    assert rest == []


_LINE = re.compile(r"(begin|end) (?P<what>.*) of (?P<job>\S*) on (?P<node>\S*) in (?P<directory>.*)")


def began_as(line: str) -> str:
    """Return the task, its replica and the program in a line of the log."""
    match = _LINE.fullmatch(line)
    assert match is not None, line
    return match["what"]


def begun_tasks(log: Sequence[str], what: str) -> list[tuple[str, str]]:
    """Return the task of each program that began, and its directory, job or node."""
    lines = [_LINE.fullmatch(it) for it in log if it.startswith("begin ")]
    return [(it["what"].split()[0], it[what]) for it in lines if it is not None]


def check_ended(journal: Journal) -> None:
    """Check that all has completed, and that services were ended with their group."""
    for run in (journal, *inner_journals(journal)):
        entries = {it.id: it for it in run.plan.entries}
        for name, parts in run.parts.items():
            expected = "CANCELED" if entries[name].kind is Kind.SERVICE else "COMPLETED"
            assert {it.state.value for it in parts} == {expected}, (name, parts)


def inner_journals(journal: Journal) -> list[Journal]:
    """Return the journal of the inside of each group."""
    groups = [it for it in journal.plan.entries if it.kind is Kind.ALLOCATION]
    return [journals.inner_journal(journal.path, it) for it in groups]
