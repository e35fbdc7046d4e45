"""Tasks of groups that need several nodes each, started by srun without Flux."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from example_runs import check_ended
from jobspec_support import drive_run
from jpsi import JobAttributes, JobSpec, ResourceSpecV1
from jpsi_jobspec.groups.executors import launch_on_nodes
from jpsi_testing.fake import FakeScheduler

Log = Callable[[], list[str]]

#: The shape of Mini-Mummi: a nested group whose task has no resources, and replicas on several nodes.
FLOW = """\
version: 1
resources:
  whole: {{type: node, count: 2, with: [{{type: core, count: 2}}]}}
  both: {{type: node, count: 2, with: [{{type: core, count: 1}}]}}
  part: {{type: core, count: 1}}
  anywhere: {{type: core, replicas: 3}}
groups:
- name: whole
  resources: whole
  attributes: {{cwd: {folder}}}
  tasks:
  - {{local: true, command: 'echo begin >>ran'}}
  - {{group: train}}
  - name: beside
    resources: part
    replicas: 2
    depends_on: [train]
    command: 'echo "beside $JPSI_REPLICA" >>ran'
  - {{name: wide, resources: anywhere, depends_on: [beside, {{name: test, when: any}}], command: {wide}}}
  - {{name: test, resources: both, replicas: 3, depends_on: [train], command: {test}}}
  - {{local: true, command: 'echo end >>ran'}}
- name: train
  resources: both
  tasks:
  - {{name: train, command: 'echo "train $SLURMD_NODENAME $SLURM_PROCID $SLURM_JOB_ID" >>ran'}}
"""
WIDE = "'echo \"wide $SLURMD_NODENAME $SLURM_PROCID\" >>ran'"
TEST = "'echo \"test $JPSI_REPLICA $SLURM_PROCID\" >>ran; exit $SLURM_PROCID'"


@pytest.mark.parametrize(("test", "code"), [(TEST.replace("; exit $SLURM_PROCID", ""), 0), (TEST, 1)])
def test_a_task_of_several_nodes_has_a_process_on_each_and_runs_once(
    test: str, code: int, tmp_path: Path, log: Log, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands("slurm")

    journal = drive_run(FLOW.format(folder=tmp_path, test=test, wide=WIDE), "slurm", tmp_path)

    begin, *ran, wide, wider, widest, end = (tmp_path / "ran").read_text().splitlines()
    assert (begin, end) == ("begin", "end")
    (job,) = {it.split()[3] for it in ran[:2]}
    assert {tuple(it.split()[1:3]) for it in ran[:2]} in (
        {("node01", "0"), ("node02", "1")},
        {("node02", "0"), ("node01", "1")},
    )
    assert job
    spread = Counter(it.split()[1] for it in (wide, wider, widest) if it.startswith("wide "))
    assert sorted(spread) == ["node01", "node02"]
    assert sorted(spread.values()) == [1, 2]
    tested = [f"test {replica} {rank}" for replica in (1, 2, 3) for rank in (0, 1)]
    assert Counter(ran[2:]) == Counter([*tested, "beside 1", "beside 2"])
    (group,) = journal.parts["whole"]
    assert group.exit_code == code
    if not code:
        check_ended(journal)


def test_concurrent_tasks_are_on_nodes_of_their_own(
    tmp_path: Path, log: Log, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands("slurm")
    # all begin before any ends
    meet = 'echo "$JPSI_REPLICA $SLURMD_NODENAME" >>ran; until [ "$(wc -l <ran)" -ge 4 ]; do sleep 0.1; done'
    text = (
        "version: 1\nresources:\n  whole: {type: node, count: 4, with: [{type: core, count: 1}]}\n"
        f"  two: {{type: node, count: 2}}\nattributes: {{cwd: {tmp_path}}}\n"
        "groups:\n- name: g\n  resources: whole\n"
        f"  tasks: [{{name: pair, resources: two, replicas: 2, command: '{meet}'}}]\n"
    )

    check_ended(drive_run(text, "slurm", tmp_path))

    ran = [it.split() for it in (tmp_path / "ran").read_text().splitlines()]
    assert sorted(replica for replica, _ in ran) == ["1", "1", "2", "2"]
    assert sorted(node for _, node in ran) == ["node01", "node02", "node03", "node04"]


def test_each_process_has_the_gpus_of_its_node_that_the_pilot_has_given_the_task() -> None:
    both = ResourceSpecV1(node_count=2, processes_per_node=1, gpu_cores_per_process=1)
    spec = JobSpec("/bin/sh", ["-c", 'echo "$CUDA_VISIBLE_DEVICES $0"', "a b"], resources=both)

    launch_on_nodes(spec, "srun")

    assigned = "n1 CUDA_VISIBLE_DEVICES=1\nn2 CUDA_VISIBLE_DEVICES=0,3"
    of_slurm = {**os.environ, "JPSI_PILOT_DEVICES": assigned, "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    words = [str(spec.executable), *(spec.arguments or ())]
    found = [
        subprocess.run(words, env={**of_slurm, "SLURMD_NODENAME": it}, check=True, capture_output=True).stdout
        for it in ("n1", "n2")
    ]
    assert found == [b"1 a b\n", b"0,3 a b\n"]


def test_options_of_the_user_are_kept() -> None:
    attributes = JobAttributes(custom_attributes={"srun.mpi": "pmi2"})
    spec = JobSpec("./solve", ["${HOME}"], resources=ResourceSpecV1(node_count=2), attributes=attributes)

    launch_on_nodes(spec, "srun")

    assert (spec.launcher, spec.executable, spec.arguments) == ("srun", "./solve", ["${HOME}"])
    assert (spec.attributes.custom_attributes or {}).items() >= {("srun.mpi", "pmi2")}
