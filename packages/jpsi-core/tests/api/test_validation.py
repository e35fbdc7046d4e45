"""Validation results of one job, which count for equal jobs while the facts about the site do not change."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi import HeterogeneousResources, InvalidJobException, Job, JobAttributes, JobSpec, ResourceSpecV1
from jpsi.api.system import System
from jpsi.api.validation import RequestCache, Validation
from jpsi.model import serialization
from jpsi.plugin import Capabilities, Site
from strategies import job_specs


class Backend:
    """A backend that records the specs that it checks."""

    def __init__(self) -> None:
        self.offers: Mapping[str, Any] = {}
        self.checked = list[str]()
        self.missing = list[str]()
        self.heterogeneous = False

    def capabilities(self, site: Site) -> Capabilities:
        del site
        return Capabilities(default_launcher="multiple", heterogeneous=self.heterogeneous)

    def check_spec(self, spec: JobSpec, site: Site) -> list[list[str]]:
        self.checked.append(f"{spec.executable} {site.offers.get('queue')}")
        queue = spec.attributes.queue_name
        return [[] if queue == site.offers.get("queue") else [f"no queue {queue}"]]

    def nodes(self, spec: JobSpec, site: Site) -> list[str]:
        del spec, site
        return ["nodes"]

    def refused(self, spec: JobSpec) -> list[str]:
        return [] if spec.directory is None else ["no directory"]

    def problems(self, spec: JobSpec) -> list[str]:
        del spec
        return list(self.missing)


@pytest.fixture
def backend() -> Backend:
    return Backend()


def checking(backend: Backend, *, has_policy: bool = False) -> Validation:
    """Return the checks of an executor with this backend."""
    # `isinstance` with a protocol requires all of its methods
    names = ["offers", "submit", "track", "attach", "recover"]
    names += ["cancel", "hold", "release", "info", "native_ids", "streams"]
    engine = SimpleNamespace(
        problems=backend.problems,
        refused=backend.refused,
        retries=False,
        choose_queue=lambda spec, queues: (spec, ()),
        **dict.fromkeys(names, lambda: None),
    )
    launcher = SimpleNamespace(
        hooks=SimpleNamespace(check_spec=lambda spec: [], launch=lambda spec: ["launch"]),
        rank_variables=(),
        sources_scripts=False,
    )
    parts = {
        "hooks": backend,
        "has_policy": has_policy,
        "defaults": SimpleNamespace(filled_in=lambda spec: spec),
        "plugins": SimpleNamespace(candidates=[]),
    }
    site = lambda: Site(config=None, offers=backend.offers)  # noqa: E731  as in an executor
    system = System(
        name="acme", hooks=cast("Any", backend), transport=cast("Any", None), site=site, has_commands=True
    )
    return Validation(
        cast("Any", SimpleNamespace(**parts)),
        cast("Any", engine),
        system,
        cast("Any", SimpleNamespace(of=lambda spec: (launcher, []))),
    )


def of_queue(name: str) -> Job:
    return Job(JobSpec("c", attributes=JobAttributes(queue_name=name)))


def test_equal_jobs_are_checked_once(backend: Backend) -> None:
    checks = checking(backend)

    found = [checks.submission(Job(JobSpec(name)), 1).nodes for name in "ab"]

    assert backend.checked == ["a None"]
    assert found == [["nodes"], ["nodes"]]


def test_memory_of_each_core_is_submitted_as_that_of_the_job(backend: Backend) -> None:
    backend.heterogeneous = True
    parts = [ResourceSpecV1(process_count=2, memory_per_cpu=5 << 20), ResourceSpecV1(memory=3 << 20)]
    job = Job(JobSpec("a", resources=HeterogeneousResources(parts)))

    submitted = checking(backend).submission(job, 1).spec.resources

    assert submitted == HeterogeneousResources([ResourceSpecV1(process_count=2, memory=10 << 20), parts[1]])
    assert parts[0].memory_per_cpu == 5 << 20


def test_different_jobs_are_checked_each(backend: Backend) -> None:
    checks = checking(backend)
    checks.submission(Job(JobSpec("a")), 1)

    with pytest.raises(InvalidJobException, match="no queue fast"):
        checks.submission(of_queue("fast"), 1)


def test_probed_facts_about_a_site_count_from_then_on(backend: Backend) -> None:
    checks = checking(backend)
    with pytest.raises(InvalidJobException, match="no queue fast"):
        checks.submission(of_queue("fast"), 1)

    backend.offers = {"queue": "fast"}

    assert checks.submission(of_queue("fast"), 1).nodes == ["nodes"]


def test_facts_that_may_change_are_checked_each_time(backend: Backend) -> None:
    checks = checking(backend)
    checks.submission(Job(JobSpec("a")), 1)

    backend.missing = ["its directory was removed"]

    with pytest.raises(InvalidJobException, match="its directory was removed"):
        checks.submission(Job(JobSpec("a")), 1)


def test_one_request_checks_once(backend: Backend) -> None:
    checks, cache = checking(backend), RequestCache()
    checks.submission(Job(JobSpec("a")), 1, cache)

    backend.missing = ["its directory was removed"]

    assert checks.submission(Job(JobSpec("b")), 1, cache).launch == ["launch"]


@given(specs=st.lists(job_specs, min_size=1, max_size=4), arguments=st.lists(st.lists(st.text()), max_size=4))
def test_a_job_is_submitted_as_if_it_were_the_only_one_of_its_request(
    specs: list[JobSpec], arguments: list[list[str]]
) -> None:
    checks, cache = checking(Backend()), RequestCache()
    for spec in specs:
        for it in (spec.arguments, *arguments):
            alone, together = (
                _outcome(checks, attrs.evolve(spec, arguments=it), known) for known in (None, cache)
            )

            assert alone == together


def _outcome(checks: Validation, spec: JobSpec, cache: RequestCache | None) -> object:
    try:
        found = checks.submission(Job(spec), 1, cache)
    except InvalidJobException as e:
        return str(e)
    assert found.plain is not None
    return found.spec, serialization.decode(found.plain), found.launch, found.nodes


def custom(value: object) -> JobSpec:
    return JobSpec("a", attributes=JobAttributes(custom_attributes={"acme.x": value}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (custom(1), custom(True)),
        (custom(1), custom(1.0)),
        (
            JobSpec("a", environment={"A": "1", "B": "${A}"}),
            JobSpec("a", environment={"B": "${A}", "A": "1"}),
        ),
        (JobSpec("a", create_directory=False), JobSpec("a", create_directory=0)),  # type: ignore[arg-type]  # wrong
    ],
    ids=["1 and True", "1 and 1.0", "order of variables", "False and 0"],
)
def test_specs_that_only_compare_equal_are_checked_each(
    backend: Backend, one: JobSpec, other: JobSpec
) -> None:
    checks, cache = checking(backend), RequestCache()

    assert one == other
    assert _outcome(checks, one, cache) is not _outcome(checks, other, cache)
    assert repr(_outcome(checks, other, cache)) == repr(_outcome(checks, other, None))


def test_equal_jobs_of_a_request_share_what_was_made_for_the_first(backend: Backend) -> None:
    checks, cache = checking(backend), RequestCache()

    first, second, third = (
        checks.submission(Job(JobSpec("a", [text])), 1, cache) for text in ("1", "1", "2")
    )

    assert (first.like, second.like, third.like) == (None, first, first)
    assert (second.spec is first.spec, second.plain is first.plain) == (True, True)
    assert (third.spec.arguments, third.plain) == (["2"], {"executable": "a", "arguments": ["2"]})


@pytest.mark.parametrize("arguments", [["\0"], [1], ("b",), ["a" * 10**6], ["é\udc00\ud800"], 5])
def test_arguments_are_checked_for_each_job_of_a_request(backend: Backend, arguments: object) -> None:
    checks, cache = checking(backend), RequestCache()
    spec = JobSpec("a", arguments)  # type: ignore[arg-type]  # wrong ones
    checks.submission(Job(JobSpec("a", ["b"])), 1, cache)

    assert _outcome(checks, spec, cache) == _outcome(checks, spec, None)


def test_later_changes_of_arguments_change_no_repeated_job(backend: Backend) -> None:
    checks, cache, arguments = checking(backend), RequestCache(), ["2"]
    checks.submission(Job(JobSpec("a", ["1"])), 1, cache)

    found = checks.submission(Job(JobSpec("a", arguments)), 1, cache)
    arguments.append("3")

    assert found.spec.arguments == ["2"]


@pytest.mark.parametrize("spec", [None, "a"])
def test_a_job_without_a_spec_is_refused_after_a_valid_one(backend: Backend, spec: object) -> None:
    checks, cache = checking(backend), RequestCache()
    checks.submission(Job(JobSpec("a")), 1, cache)

    with pytest.raises(InvalidJobException, match="spec"):
        checks.submission(Job(spec), 1, cache)  # type: ignore[arg-type]  # wrong


def test_a_policy_checks_each_job_of_a_request(backend: Backend) -> None:
    checks, cache = checking(backend, has_policy=True), RequestCache()

    for _ in range(2):
        checks.submission(Job(JobSpec("a")), 1, cache)

    assert backend.checked == ["a None", "a None"]


def test_a_policy_checks_each_job(backend: Backend) -> None:
    checks = checking(backend, has_policy=True)

    for name in "ab":
        checks.submission(Job(JobSpec(name)), 1)

    assert backend.checked == ["a None", "b None"]


def test_a_job_that_a_policy_refuses_leaves_no_answer_to_others(backend: Backend) -> None:
    """Else a sound job would lack the names of its nodes."""
    checks = checking(backend, has_policy=True)
    with pytest.raises(InvalidJobException):
        checks.submission(of_queue("fast"), 1)

    backend.offers = {"queue": "fast"}

    assert checks.submission(of_queue("fast"), 1).nodes == ["nodes"]


def test_the_reason_why_a_job_can_never_run_is_among_all_problems(backend: Backend) -> None:
    job = of_queue("fast")
    assert job.spec is not None
    job.spec.directory = "/"  # type: ignore[assignment]  # read as a path

    with pytest.raises(InvalidJobException, match=r"(?s)no queue fast.*no directory"):
        checking(backend).submission(job, 1)


SEVERAL = HeterogeneousResources([ResourceSpecV1(memory=2**30), ResourceSpecV1(process_count=2)])


def test_several_kinds_of_slots_are_refused_before_the_engine_gets_them(backend: Backend) -> None:
    resources = list[object]()
    backend.problems = lambda spec: resources.append(spec.resources) or ["no room"]  # type: ignore[func-returns-value, method-assign, redundant-expr]  # short

    with pytest.raises(InvalidJobException) as caught:
        checking(backend).submission(Job(JobSpec("a", resources=SEVERAL)), 1)

    why = "the executor acme gives a job one kind of slot, not several; use ResourceSpecV1, or"
    assert f"{why} another executor" in str(caught.value)
    assert "no room" in str(caught.value)
    assert resources == [None]


def test_an_executor_for_several_kinds_of_slots_accepts_them(backend: Backend) -> None:
    backend.heterogeneous = True

    submission = checking(backend).submission(Job(JobSpec("a", resources=SEVERAL)), 1)

    assert submission.spec.resources == SEVERAL
    assert isinstance(submission.spec.resources, HeterogeneousResources)
    assert submission.spec.resources.components[0] is not SEVERAL.components[0]
