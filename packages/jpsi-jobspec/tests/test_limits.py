"""Alternatives beyond the limits of all queues, which are not chosen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from jobspec_support import found, planned
from jpsi import Queue
from jpsi_jobspec.commands.arguments import Arguments
from jpsi_jobspec.commands.preparation import prepare_plan
from jpsi_jobspec.planning.site import Limit, Site, queue_limit
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.running.job_specs import job_spec
from jpsi_testing.fake import FakeScheduler

TEXT = """\
version: 1
resources:
  wide: {type: node, count: 9, attributes: {duration: 1h}}
  long: {type: node, count: 2, attributes: {duration: 9h}}
  small: {type: node, count: 2, attributes: {duration: 1h}}
tasks: [{command: a, resources: wide|long|small}]
"""
LIMITS = (Limit(queue="main", nodes=4, seconds=7200), Limit(queue="short", nodes=8, seconds=600))


@pytest.mark.clause("ng-or")
def test_the_first_alternative_that_a_queue_accepts_is_chosen() -> None:
    (entry,) = planned(TEXT, Site(limits=LIMITS)).entries

    assert entry.resources == "small"
    assert entry.why[-1] == (
        "'long' is left out: no queue takes 2 slots on 2 nodes for 9:00:00:"
        " main 4 nodes for 2:00:00, short 8 nodes for 0:10:00"
    )


def test_without_known_queues_the_first_alternative_is_chosen() -> None:
    assert planned(TEXT).entries[0].resources == "wide"


def test_a_document_is_refused_if_no_queue_accepts_any_alternative() -> None:
    text = TEXT.replace("|small", "")

    assert [it.code for it in found(text, site=Site(limits=LIMITS))] == ["JS090"]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (Queue(name="q", native_state="up"), Limit(queue="q")),
        (
            Queue(name="q", native_state="up", max_nodes=4, nodes=9, max_walltime=timedelta(hours=1)),
            (4, 3600),
        ),
        (Queue(name="q", native_state="up", nodes=9, max_walltime=timedelta(0)), (9, None)),
    ],
    ids=["unknown", "both", "no-limit"],
)
def test_the_limit_of_a_queue_is_its_smallest_bound(
    queue: Queue, expected: Limit | tuple[int, float | None]
) -> None:
    if isinstance(expected, tuple):
        expected = Limit(queue="q", nodes=expected[0], seconds=expected[1])

    assert queue_limit(queue) == expected


def test_queues_are_queried_if_there_is_a_choice_and_the_run_stores_their_limits(
    tmp_path: Path, log: object, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands("slurm")
    file = tmp_path / "flow.yaml"
    file.write_text(TEXT)

    plan, _, site = prepare_plan(Arguments(file=str(file), executor="slurm"))

    assert site.limits
    assert runs.create_run(str(file), TEXT, site, {}).plan == plan
    file.write_text(TEXT.replace("wide|long|small", "small"))
    assert prepare_plan(Arguments(file=str(file), executor="slurm"))[2].limits == ()


TIMES = """\
version: 1
resources: {r: {type: core, count: 1}}
tasks:
- {name: task, command: a, resources: r}
- {name: short, command: a, resources: r, attributes: {duration: 5m}}
- {group: group}
groups: [{name: group, resources: r, tasks: [{command: b, local: true}]}]
"""


def test_a_job_without_a_duration_gets_the_default_if_jobs_need_a_time_limit(
    tmp_path: Path, log: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("targets: {sweeps: {executor: pilot}}\n")
    monkeypatch.setenv("JPSI_CONFIG", str(config))
    file = tmp_path / "flow.yaml"
    file.write_text(TIMES)

    plan, _, site = prepare_plan(Arguments(file=str(file), executor="sweeps"))

    assert [it.attributes.duration for it in plan.entries] == [
        timedelta(minutes=10),
        timedelta(minutes=5),
        timedelta(minutes=10),
    ]
    assert plan.entries[0].why[-1] == "it has no duration, and gets 0:10:00, as jobs there need a time limit"
    assert runs.create_run(str(file), TIMES, site, {}).plan == plan
    assert job_spec(planned(TIMES).entries[0]).attributes.duration == timedelta(0)  # type: ignore[union-attr]


def test_an_unlimited_job_is_refused_if_jobs_need_a_limit() -> None:
    text = TIMES.replace("duration: 5m", "duration: 0")

    (problem,) = found(text, site=Site(target="sweeps", default_duration=timedelta(minutes=10)))

    assert (problem.code, problem.at.line) == ("JS094", 5)
    assert problem.says == "has `duration: 0`, no limit, and jobs on 'sweeps' need one"
    assert found(text) == []
