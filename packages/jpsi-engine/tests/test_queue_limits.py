"""A job that no queue can ever start is refused with the numbers; what may start is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from types import SimpleNamespace

import attrs
import pytest

import jpsi
from jpsi_engine import (
    Excess,
    QueueLimits,
    array_specs,
    describe_never,
    excess_over_queues,
    reopen_queue,
)
from jpsi_engine.queue_limits import choose_queue, describe_unlisted

MAIN = jpsi.Queue(
    name="main",
    native_state="UP",
    nodes=4,
    max_nodes=2,
    node_cores=8,
    node_memory=8000 * 2**20,
    max_walltime=timedelta(hours=4),
)
DEBUG = jpsi.Queue(name="debug", native_state="UP", nodes=1, max_walltime=timedelta(hours=1))
OPEN = jpsi.Queue(name="open", native_state="UP", nodes=4, max_walltime=timedelta())


def spec_of(*components: jpsi.ResourceSpecV1) -> jpsi.JobSpec:
    (first, *others) = components
    return jpsi.JobSpec("true", resources=jpsi.HeterogeneousResources(components) if others else first)


def spec(nodes: int | None = None, hours: int | None = None, **attributes: str) -> jpsi.JobSpec:
    return jpsi.JobSpec(
        "true",
        resources=None if nodes is None else jpsi.ResourceSpecV1(node_count=nodes),
        attributes=jpsi.JobAttributes(
            duration=None if hours is None else timedelta(hours=hours),
            **attributes,  # type: ignore[arg-type]  # texts
        ),
    )


NODES = Excess(
    "nodes", "it asks for 3 nodes and can never start; the queue main has 2, the queue debug has 1"
)
TIME = Excess(
    "time",
    "it asks for 5:00:00 and can never start; the queue main has 4:00:00, the queue debug has 1:00:00",
)
EXCESS = {
    "no request": (spec(), [MAIN, DEBUG], []),
    "enough": (spec(2, 4), [MAIN, DEBUG], []),
    "nodes": (spec(3), [MAIN, DEBUG], [NODES]),
    "time": (spec(hours=5), [MAIN, DEBUG], [TIME]),
    "both": (spec(3, 5), [MAIN, DEBUG], [NODES, TIME]),
    "another queue can": (spec(4, 5), [MAIN, DEBUG, OPEN], []),
    "the named queue cannot": (
        spec(hours=2, queue_name="debug"),
        [MAIN, DEBUG],
        [Excess("time", "it asks for 2:00:00 and can never start; the queue debug has 1:00:00")],
    ),
    # batch systems are not asked for a time then, and use their default
    "no limit requested": (spec(hours=0), [DEBUG], []),
    "an unknown queue": (spec(3, 5, queue_name="other"), [MAIN, DEBUG], []),
    "an unknown limit": (spec(9, 9), [jpsi.Queue(name="a", native_state="UP")], []),
    "a queue without a name": (
        spec(3),
        [jpsi.Queue(name="", native_state="", nodes=2)],
        [Excess("nodes", "it asks for 3 nodes and can never start; there are 2")],
    ),
    "a reservation": (spec(3, 5, reservation_id="r"), [MAIN], []),
    "no queues": (spec(3, 5), [], []),
}


KIND = jpsi.ResourceSpecV1


def _cores(count: int) -> Excess:
    return Excess("cores", f"it asks for {count} cores on one node and can never start; the queue main has 8")


MEMORY = Excess("memory", "it asks for 8G on one node and can never start; the queue main has 8000M")
MEMORY_OF_TWO_NODES = Excess(
    "memory", "it asks for 8G on one node (16G in all) and can never start; the queue main has 8000M"
)
GIBIBYTE = 2**30
ON_ONE_NODE = {
    "enough": (spec_of(KIND(cpu_cores_per_process=8, memory=8000 * 2**20)), []),
    "cores": (spec_of(KIND(cpu_cores_per_process=9)), [_cores(9)]),
    "cores of several processes": (
        spec_of(KIND(node_count=2, processes_per_node=5, cpu_cores_per_process=2)),
        [_cores(10)],
    ),
    # five on one node and one on the other is the worst of the possible placements, three the best
    "a placement is open": (spec_of(KIND(process_count=6, node_count=2, cpu_cores_per_process=2)), []),
    "nodes are open": (spec_of(KIND(process_count=2, cpu_cores_per_process=8)), []),
    "cores of all nodes": (
        spec_of(KIND(process_count=17)),
        [Excess("processes", "it asks for 17 cores in all and can never start; the queue main has 16")],
    ),
    # each kind may be a job of its own, with limits of its own
    "cores of two kinds": (spec_of(KIND(process_count=10), KIND(process_count=10)), []),
    "memory": (spec_of(KIND(memory=8 * GIBIBYTE)), [MEMORY]),
    "memory of each core": (spec_of(KIND(cpu_cores_per_process=4, memory_per_cpu=2 * GIBIBYTE)), [MEMORY]),
    "memory of two nodes": (spec_of(KIND(node_count=2, memory=16 * GIBIBYTE)), [MEMORY_OF_TWO_NODES]),
    "memory, and nodes are open": (spec_of(KIND(process_count=4, memory=16 * GIBIBYTE)), []),
    "one of several kinds": (spec_of(KIND(), KIND(cpu_cores_per_process=9)), [_cores(9)]),
}


@pytest.mark.parametrize(("job", "expected"), ON_ONE_NODE.values(), ids=ON_ONE_NODE)
def test_a_job_that_fits_on_no_node_is_refused(job: jpsi.JobSpec, expected: list[Excess]) -> None:
    assert excess_over_queues(job, [MAIN]) == expected
    assert excess_over_queues(job, [MAIN, DEBUG]) == [], "the size of the nodes of DEBUG is not known"


@pytest.mark.parametrize(("job", "queues", "expected"), EXCESS.values(), ids=EXCESS)
def test_only_what_no_queue_can_start_is_refused(
    job: jpsi.JobSpec, queues: list[jpsi.Queue], expected: list[Excess]
) -> None:
    assert excess_over_queues(job, queues) == expected


UNKNOWN = jpsi.Queue(name="unknown", native_state="UP")
GPUS = attrs.evolve(DEBUG, name="gpus", has_gpus=True)
CLOSED = attrs.evolve(DEBUG, name="closed", is_open=False)
STOPPED = attrs.evolve(DEBUG, name="stopped", is_started=False)
GPU_JOB = spec_of(jpsi.ResourceSpecV1(gpu_cores_per_process=1))
SMALLEST = "its limits are the smallest that suffice"
CHOICES = {
    "the smallest": (spec(1, 1), [UNKNOWN, OPEN, MAIN, DEBUG], (), "debug", SMALLEST),
    "the smallest that fits": (spec(2, 1), [OPEN, MAIN, DEBUG], (), "main", SMALLEST),
    "no limit comes last": (spec(1, 9), [UNKNOWN, MAIN, DEBUG, OPEN], (), "open", SMALLEST),
    "the preferred one": (
        spec(1, 1),
        [MAIN, DEBUG, OPEN],
        ("none", "open", "main"),
        "open",
        "the configuration prefers it",
    ),
    "the preferred one that fits": (spec(4), [MAIN, OPEN], ("main",), "open", SMALLEST),
    "an equal one keeps its place": (spec(1), [attrs.evolve(DEBUG, name="b"), DEBUG], (), "b", SMALLEST),
    "one that is closed": (spec(1, 1), [CLOSED, MAIN], (), "main", SMALLEST),
    "one that starts no jobs": (spec(1, 1), [STOPPED, OPEN], (), "open", SMALLEST),
    "a preferred one that starts no jobs": (spec(1, 1), [STOPPED, OPEN], ("stopped",), "open", SMALLEST),
    "the only one": (spec(), [MAIN], (), "main", "it is the only queue"),
    "the default among equals": (
        spec(1, 1),
        [jpsi.Queue(name="admin", native_state=""), attrs.evolve(UNKNOWN, is_default=True)],
        (),
        "unknown",
        "it has no known limits, and is the default queue",
    ),
    "the first without limits": (
        spec(1, 1),
        [UNKNOWN, CLOSED],
        (),
        "unknown",
        "it has no known limits, and is the first such queue",
    ),
    "one for everybody": (spec(1, 1), [attrs.evolve(DEBUG, is_restricted=True), MAIN], (), "main", SMALLEST),
    "one for some users, if no other fits": (
        spec(1, 9),
        [attrs.evolve(OPEN, is_restricted=True), MAIN],
        (),
        "open",
        SMALLEST,
    ),
    "one with GPUs": (GPU_JOB, [UNKNOWN, MAIN, attrs.evolve(OPEN, has_gpus=True)], (), "open", SMALLEST),
    "a preferred one that may have GPUs": (
        GPU_JOB,
        [UNKNOWN, MAIN],
        ("main",),
        "main",
        "the configuration prefers it",
    ),
    "the only one that may have GPUs": (
        GPU_JOB,
        [attrs.evolve(UNKNOWN, has_gpus=False), MAIN],
        (),
        "main",
        SMALLEST,
    ),
    "one without a name": (spec(2), [attrs.evolve(MAIN, name="")], (), "", "it is the only queue"),
}


@pytest.mark.parametrize(("job", "queues", "preferred", "name", "why"), CHOICES.values(), ids=CHOICES)
def test_a_queue_that_fits_is_chosen(
    job: jpsi.JobSpec, queues: list[jpsi.Queue], preferred: tuple[str, ...], name: str, why: str
) -> None:
    chosen, reason = choose_queue(job, queues, preferred)

    assert (chosen, reason.partition(";")[0]) == (name, why)


def test_the_reason_has_the_numbers_of_the_other_queues() -> None:
    _, reason = choose_queue(spec(2, 2), [DEBUG, CLOSED, MAIN, OPEN])

    others = "open fits, too; debug has 1 nodes and 1:00:00; closed takes no jobs"
    assert reason == f"{SMALLEST}; {others}"


def test_without_a_queue_that_fits_the_numbers_of_each_are_named() -> None:
    found = [choose_queue(spec(3, 5), queues) for queues in ([MAIN, DEBUG, CLOSED], [])]

    requested = "no queue takes a job that asks for 3 nodes and 5:00:00"
    each = "main has 2 nodes and 4:00:00, debug has 1 nodes and 1:00:00, closed takes no jobs"
    assert found == [
        (None, f"{requested}: {each}"),
        (None, "no queue takes a job: the batch system names none"),
    ]


def test_a_job_with_gpus_must_name_its_queue_if_none_is_known_to_have_some() -> None:
    blind = choose_queue(GPU_JOB, [UNKNOWN, MAIN])
    small = choose_queue(spec_of(KIND(node_count=3, gpu_cores_per_process=1)), [OPEN, GPUS])

    assert blind == (
        None,
        "the batch system does not tell which queues have GPUs; name one of unknown, main",
    )
    each = "open is not known to have GPUs, gpus has 1 nodes"
    assert small == (None, f"no queue takes a job that asks for 3 nodes and GPUs: {each}")


def test_a_job_without_a_time_limit_exceeds_every_limit_that_is_known() -> None:
    job = spec(hours=0)
    job.attributes.duration = timedelta.max

    assert choose_queue(job, [DEBUG, OPEN])[0] == "open"
    assert choose_queue(job, [DEBUG, MAIN]) == (
        None,
        "no queue takes a job that asks for no limit of time: debug has 1:00:00, main has 4:00:00",
    )


WHOLE_JOB = {
    "cores": (attrs.evolve(UNKNOWN, max_cores=4), "5 cores in all: unknown has 4 cores in all"),
    "memory": (attrs.evolve(UNKNOWN, max_memory=GIBIBYTE), "5G in all: unknown has 1G in all"),
    "nodes": (attrs.evolve(UNKNOWN, min_nodes=8), "5 nodes: unknown has at least 8 nodes"),
    "least cores": (
        attrs.evolve(UNKNOWN, min_cores=8),
        "5 cores in all: unknown has at least 8 cores in all",
    ),
    "least memory": (
        attrs.evolve(UNKNOWN, min_memory=8 * GIBIBYTE),
        "5G in all: unknown has at least 8G in all",
    ),
    "least time": (
        attrs.evolve(UNKNOWN, min_walltime=timedelta(hours=2)),
        "1:00:00: unknown has at least 2:00:00",
    ),
}


@pytest.mark.parametrize(("queue", "expected"), WHOLE_JOB.values(), ids=WHOLE_JOB)
def test_limits_of_whole_jobs_and_the_least_requests_are_compared(queue: jpsi.Queue, expected: str) -> None:
    job = spec_of(KIND(process_count=5, memory_per_cpu=GIBIBYTE))
    job.attributes.duration = timedelta(hours=1)

    assert choose_queue(job, [queue]) == (None, f"no queue takes a job that asks for {expected}")


def test_a_repeated_job_gets_a_queue_anew() -> None:
    job = spec(2, queue_name="debug")
    job.attributes.custom_attributes = {"slurm.nice": 1, "jpsi.queue_reason": "it fits"}

    repeated = reopen_queue(job).attributes

    assert (repeated.queue_name, repeated.custom_attributes) == ("auto", {"slurm.nice": 1})
    assert job.attributes.queue_name == reopen_queue(spec(2, queue_name="debug")).attributes.queue_name


def test_options_of_the_batch_system_may_lift_limits() -> None:
    job = spec(3, 5)
    job.attributes.set_custom_attribute("slurm.qos", "big")

    assert excess_over_queues(job, [MAIN]) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "debgu",
            "the queue debgu is none of those that slurm lists: main, debug, open; did you mean debug?",
        ),
        ("xy", "the queue xy is none of those that slurm lists: main, debug, open"),
        *((it, None) for it in ("debug", "auto", "main,debgu", "debgu@server", "de*", "a b", "", None)),
    ],
)
def test_a_queue_that_the_batch_system_does_not_list_is_named(name: str | None, expected: str | None) -> None:
    assert describe_unlisted(name, [MAIN, DEBUG, OPEN], "slurm") == expected


def test_of_many_queues_ten_are_named() -> None:
    many = [jpsi.Queue(name=f"q{it}", native_state="UP") for it in range(12)]

    sentence = describe_unlisted("other", many, "slurm")

    assert sentence is not None
    assert sentence.endswith("lists: q0, q1, q2, q3, q4, q5, q6, q7, q8, q9 and 2 more")


def test_without_names_of_queues_none_is_unlisted() -> None:
    assert describe_unlisted("debug", [jpsi.Queue(name="", native_state="UP")], "flux") is None


def test_queues_are_queried_once_and_a_query_that_fails_excludes_nothing() -> None:
    jobs = [("wide", spec(99)), ("misspelt", spec(queue_name="debgu")), ("no spec", None)]
    asked = []

    def answer() -> Sequence[jpsi.Queue]:
        asked.append("sinfo")
        return [MAIN, DEBUG]

    def fail() -> Sequence[jpsi.Queue]:
        asked.append("sinfo")
        raise jpsi.SubmitException("the controller does not answer")

    limits, silent = _limits(answer), _limits(fail)

    assert [*limits.find_excess(jobs).values(), *limits.find_unlisted(jobs).values()] == [
        ["wide"],
        ["misspelt"],
    ]
    assert (silent.find_excess(jobs), silent.find_unlisted(jobs)) == ({}, {})
    assert asked == ["sinfo"] * 2


def test_no_queue_is_queried_if_no_job_names_one() -> None:
    def fail() -> Sequence[jpsi.Queue]:
        raise AssertionError

    assert _limits(fail).find_unlisted([("plain", spec()), ("auto", spec(queue_name="auto"))]) == {}


def _limits(queues: Callable[[], Sequence[jpsi.Queue]]) -> QueueLimits:
    system = SimpleNamespace(has_commands=True, queues=queues)
    return QueueLimits(SimpleNamespace(name="slurm", system=system))  # type: ignore[arg-type]  # what it uses


def test_an_element_of_an_array_is_compared_with_the_queues() -> None:
    (job,) = array_specs(spec(3), "1")

    assert excess_over_queues(job, [MAIN, DEBUG]) == [NODES]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("the job requests more time than its partition allows", "it never starts like this: lower --time"),
        (
            "more memory than the limit per CPU or node",
            "it never starts like this: lower --memory",
        ),
        ("no node can ever run it", "it never starts like this: lower what it asks for"),
        ("the job requests more nodes than its partition allows or has up", None),
        (
            "Can Never Run: Insufficient amount of resource: ncpus (R: 999 A: 4 T: 4)",
            "it never starts like this: lower --cores",
        ),
        ("the nodes are in use (Resources)", None),
    ],
)
def test_reasons_for_which_a_job_never_starts_say_what_to_lower(reason: str, expected: str | None) -> None:
    assert describe_never(reason, "--") == expected
