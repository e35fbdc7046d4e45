"""Mini-Mummi and the other nested examples, with a database server, on a real Slurm.

There is no Flux. The documents are those of the language, with fewer nodes, and the port of the database.
"""

from __future__ import annotations

import shutil
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cluster
import pytest
import yaml
from flows import Flow

from conftest import TARGET
from jobspec_support import example
from jpsi_testing.waiting import eventually

Log = Callable[[], list[str]]
Record = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path, log: Log) -> Path:
    """Return the tasks' home directory with the files that they apply; put their programs on PATH."""
    assert shutil.which("flux") is None
    cluster.install(tmp_path / "bin")
    return tmp_path / "home"


def scaled(name: str, home: Path, counts: Mapping[str, int]) -> str:
    """Return an example with fewer nodes: a `count` for some of its resources."""
    document = yaml.safe_load(example(name))
    for it, count in counts.items():
        assert count < document["resources"][it]["count"]
        document["resources"][it]["count"] = count
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text.replace("localhost:8080", f"localhost:{cluster.configure(home)}")


def run_to_its_end(home: Path, text: str) -> tuple[Flow, list[Record]]:
    """Run a document beside the files that it applies; return the requests to its database."""
    flow = Flow(home, text)
    with flow.command("run", "-x", TARGET) as process:
        assert process.wait(600) == 0
    found = cluster.records(home)
    assert [it["what"] for it in (found[0], found[-1])] == ["start", "stop"]
    assert len({it["job"] for it in found}) == 1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("localhost", int((home / "database").read_text().rpartition(":")[2])))
    return flow, found[1:-1]


def ran(found: Sequence[Record], task: str) -> Counter[tuple[str, str, str]]:
    """Return each process of each replica of a task that has sent a request, with its count and node."""
    return Counter((it["replica"], it["rank"], it["node"]) for it in found if it["task"] == task)


def on_both_nodes(replicas: int) -> dict[tuple[str, str, str], int]:
    """Return the expected processes: one on each node for each replica; the pilot assigns ranks."""
    return {(str(number), "", node): 1 for number in range(1, replicas + 1) for node in ("node01", "node02")}


def without_ranks(counts: Counter[tuple[str, str, str]]) -> Counter[tuple[str, str, str]]:
    """Return the same without ranks, once each replica is known to have both."""
    found = Counter[tuple[str, str, str]]()
    ranks: dict[str, set[str]] = {}
    for (replica, rank, node), count in counts.items():
        found[replica, "", node] += count
        ranks.setdefault(replica, set()).add(rank)
    assert all(it == {"0", "1"} for it in ranks.values()), ranks
    return found


def check_completed(flow: Flow, *services: str) -> None:
    """Check that all tasks have completed, and that services were ended with their group."""
    for name, states in flow.states().items():
        expected = "CANCELED" if name in services else "COMPLETED"
        assert {state for state, _ in states} == {expected}, (name, states)


def test_mini_mummi_runs_to_its_end(home: Path) -> None:
    """Training is a group that fills the outer group; each test has two nodes, with a GPU on each."""
    text = scaled("06-mini-mummi-mended", home, {"mini-mummi": 2})

    flow, found = run_to_its_end(home, text)

    saved, tested = found[:2], found[2:]
    assert {it["what"] for it in saved} == {"saved"}
    assert without_ranks(ran(saved, "mini-mummi/train/train")) == on_both_nodes(1)
    assert {it["what"] for it in tested} == {"tested"}
    assert without_ranks(ran(tested, "mini-mummi/test")) == on_both_nodes(20)
    assert {it["saved"] for it in tested} == {2}
    assert {it["gpus"] for it in found} <= {"0", "1"}
    check_completed(flow)


def test_a_database_serves_training_and_then_tests(home: Path) -> None:
    text = scaled("16-services-mended", home, {})

    flow, found = run_to_its_end(home, text)

    saved, tested = found[:100], found[100:]
    assert Counter(it["replica"] for it in saved) == {str(number): 1 for number in range(1, 101)}
    assert {(it["what"], it["task"], it["of"]) for it in saved} == {
        ("saved", "ml-work/train", "ml-work/train")
    }
    assert Counter(it["replica"] for it in tested) == {str(number): 1 for number in range(1, 11)}
    assert {(it["what"], it["task"], it["saved"]) for it in tested} == {("tested", "ml-work/test", 100)}
    check_completed(flow)


def test_a_nested_group_runs_beside_a_sleeping_task_and_ends_before_the_database(home: Path) -> None:
    text = scaled("17-nested", home, {"machine-learning": 2, "generate-data": 1})

    flow, found = run_to_its_end(home, text)

    assert sorted((it["what"], it["task"].rpartition("/")[2]) for it in found) == [
        ("machine", "generate-data-task-1"),
        ("munch", "eat-data"),
    ]
    check_completed(flow, "sleep")


HEAD = """\
version: 1
resources:
  whole: {type: node, count: 2, with: [{type: core, count: 2}, {type: gpu, count: 2}]}
  half: {type: node, count: 2, with: [{type: core, count: 1}, {type: gpu, count: 1}]}
groups:
- name: g
  resources: whole
  attributes: {duration: 10m, cwd: "FOLDER"}
  tasks:
"""
#: Both replicas begin on both nodes before any ends.
PAIR = """\
  - name: pair
    resources: half
    replicas: 2
    command: |
      echo "$JPSI_REPLICA $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" >>ran
      until [ "$(wc -l <ran)" -ge 4 ]; do sleep 0.1; done
"""
DEAF = """\
  - name: deaf
    resources: half
    command: |
      trap '' TERM
      echo $$ >>ran
      while :; do sleep 0.2; done
  - {name: other, resources: half, command: 'until [ -e go ]; do sleep 0.2; done'}
"""


def test_tasks_on_the_same_nodes_at_once_have_gpus_of_their_own(tmp_path: Path, home: Path) -> None:
    flow = Flow(tmp_path, f"{HEAD}{PAIR}".replace("FOLDER", str(tmp_path)))

    with flow.command("run", "-x", TARGET) as process:
        assert process.wait(300) == 0

    ran = [it.split() for it in flow.ran]
    assert Counter((replica, node) for replica, node, _ in ran) == {
        (replica, node): 1 for replica in "12" for node in ("node01", "node02")
    }
    assert sorted((node, gpu) for _, node, gpu in ran) == [
        (node, gpu) for node in ("node01", "node02") for gpu in "01"
    ]


def test_a_cancelled_task_leaves_no_process_on_any_of_its_nodes(tmp_path: Path, home: Path) -> None:
    """Its processes ignore signals, and the process that started them is killed in the end."""
    flow = Flow(tmp_path, f"{HEAD}{DEAF}".replace("FOLDER", str(tmp_path)))

    with flow.command("run", "-x", TARGET) as process:
        try:
            assert eventually(lambda: len(flow.ran) == 2)
            with flow.command("cancel", names=["g/deaf"]) as cancelling:
                assert cancelling.wait(120) == 0
            assert eventually(lambda: not any(Path(f"/proc/{it}").exists() for it in flow.ran))
            assert process.poll() is None
        finally:
            (tmp_path / "go").touch()
        assert process.wait(120) == 130

    assert {name: {it for it, _ in states} for name, states in flow.states().items()} == {
        "g": {"CANCELED"},
        "deaf": {"CANCELED"},
        "other": {"COMPLETED"},
    }
