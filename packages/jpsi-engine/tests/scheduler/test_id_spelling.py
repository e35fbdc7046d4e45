"""Native ids that have several spellings: the engine knows a job by one of them, whichever it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import pluggy
import pytest

from jpsi.contract.command import CommandResult
from jpsi.contract.config import BatchConfig
from jpsi.contract.engine import EngineSetup, Submission
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks, SubmitContext, hookimpl
from jpsi.contract.observation import NOT_OFFERED, NotOffered, Observation
from jpsi.contract.shell import ShellLine
from jpsi.layers import default_hooks
from jpsi.model.dependencies import Dependency
from jpsi.model.errors import PluginError
from jpsi.model.spec import JobAttributes, JobSpec
from jpsi.model.states import JobState, JobStatus
from jpsi_engine.batch import BatchEngine
from jpsi_engine.scheduler import id_spelling
from jpsi_testing import FakeTransport, PluginDirectory, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeScheduler, Outcome

FOREIGN = {"one": "1", "\N{LATIN SMALL LETTER F WITH HOOK}17": "17", "f17": "17"}


class ForeignSpelling:
    """A layer over the toy whose native ids have a second spelling."""

    def __init__(self) -> None:
        #: The dependencies of the last script.
        self.after: tuple[Dependency, ...] = ()

    @hookimpl
    def canonical_id(self, native_id: str) -> str:
        spelled = FOREIGN.get(native_id, native_id)
        if not spelled.isdecimal():
            msg = "ids are numbers"
            raise ValueError(msg)
        return spelled

    @hookimpl(wrapper=True)
    def render_script(self, context: SubmitContext) -> Iterator[None]:
        self.after = context.after
        return (yield)  # type: ignore[return-value]  # what pluggy makes of wrappers has no type

    @hookimpl
    def find(self) -> NotOffered:
        return NOT_OFFERED


class QueriedIdsRecorder(ForeignSpelling):
    """A layer that records the ids in calls of its hooks, and returns other ids besides."""

    def __init__(self) -> None:
        super().__init__()
        self.queried: list[Sequence[str] | None] = []

    @hookimpl
    def query(self, native_ids: Sequence[str] | None) -> None:
        self.queried.append(native_ids)

    @hookimpl
    def query_finished(self, native_ids: Sequence[str]) -> None:
        self.queried.append(native_ids)

    @hookimpl
    def cancel(self, native_ids: Sequence[str]) -> None:
        self.queried.append(native_ids)

    @hookimpl(wrapper=True)
    def parse_status(self) -> Iterator[None]:
        return (yield) | {"5": Observation(state=JobState.ACTIVE, native_state="R")}  # type: ignore[return-value, operator]  # as above


class ForeignSubmitOutput(ForeignSpelling):
    """A layer whose submit command prints the second spelling."""

    @hookimpl
    def parse_submit(self, result: CommandResult) -> str:
        return f"f{result.stdout.split()[-1]}"

    @hookimpl
    def canonical_id(self, native_id: str) -> str:
        return native_id.removeprefix("f")


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60)) as scheduler:
        yield scheduler


class FailingElementIds:
    """A layer that cannot check the ids of array elements."""

    @hookimpl
    def canonical_id(self, native_id: str) -> str:
        if "." in native_id:
            msg = "the hook canonical_id failed"
            raise PluginError(msg)
        return native_id


class CanonicalIdsRecorder(ForeignSpelling):
    """A layer that records the ids that are spelled."""

    def __init__(self) -> None:
        super().__init__()
        self.spelled: list[str] = []

    @hookimpl
    def canonical_id(self, native_id: str) -> str:
        self.spelled.append(native_id)
        return native_id


def engine(
    root: Path,
    scheduler: FakeScheduler,
    layer: object,
    publish: Callable[[str, JobStatus], object] = lambda job_id, status: None,
) -> BatchEngine:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for it in (default_hooks, toy, layer):
        manager.register(it)
    setup = EngineSetup(
        executor="toy",
        version="1",
        config=BatchConfig(work_directory=root),
        transport=FakeTransport(scheduler, toy_fake),
        publish=publish,
        process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
    )
    return BatchEngine(setup, cast("ExecutorHooks", manager.hook))


def submission(root: Path, job_id: str = "a1", **fields: object) -> Submission:
    spec = JobSpec("/bin/true", directory=root, attributes=JobAttributes(**fields))  # type: ignore[arg-type]  # some of its fields
    return Submission(job_id=job_id, attempt=1, spec=spec, launch=[ShellLine('exec "$@"')])


def test_the_id_of_a_submit_command_is_spelled_as_by_hooks(tmp_path: Path, scheduler: FakeScheduler) -> None:
    assert engine(tmp_path, scheduler, ForeignSubmitOutput()).submit(submission(tmp_path)) == "1"


def test_the_id_in_a_claim_is_spelled_as_by_hooks(tmp_path: Path, scheduler: FakeScheduler) -> None:
    """Only the claim has the id of a job whose submit command never answered."""
    tested = engine(tmp_path, scheduler, ForeignSpelling())
    tested._open()
    scheduler.faults.hang("tsubmit")
    given_up = tested._spool.revoke

    def claimed_meanwhile(job_id: str, attempt: int) -> bool:
        claim = Path(tested._spool.folder(job_id), f"claim.{attempt}")
        claim.write_text("\N{LATIN SMALL LETTER F WITH HOOK}17\n", encoding="utf-8")
        return given_up(job_id, attempt)

    tested._spool.revoke = claimed_meanwhile  # type: ignore[method-assign]  # between two instructions

    assert tested.submit(submission(tmp_path)) == "17"


def test_a_claim_that_is_no_id_is_unchanged(tmp_path: Path, scheduler: FakeScheduler) -> None:
    tested = engine(tmp_path, scheduler, ForeignSpelling())
    tested.submit(submission(tmp_path))
    Path(tested._spool.folder("a1"), "claim.1").write_text("unnamed.99\n")

    assert tested._native_ids.claimed_id("a1", 1) == "unnamed.99"


@pytest.mark.parametrize("text", ["1", "one"])
def test_any_spelling_can_be_attached_to(tmp_path: Path, scheduler: FakeScheduler, text: str) -> None:
    tested = engine(tmp_path, scheduler, ForeignSpelling())
    tested.submit(submission(tmp_path))

    assert tested.attach("b1", text) == "1"

    job = tested._open()[0].get("b1")
    assert job is not None
    assert (job.native_id, job.spool_id) == ("1", "a1")


def test_attach_refuses_text_that_cannot_be_an_id(tmp_path: Path, scheduler: FakeScheduler) -> None:
    published: list[JobStatus] = []
    tested = engine(
        tmp_path, scheduler, ForeignSpelling(), publish=lambda _, status: published.append(status)
    )

    tested.attach("b1", "two")
    tested.track("b1")

    assert [it.message for it in published] == ["'two' cannot be the native id of a job: ids are numbers"]


def test_any_spelling_can_be_waited_for(tmp_path: Path, scheduler: FakeScheduler) -> None:
    layer = ForeignSpelling()
    tested = engine(tmp_path, scheduler, layer)
    tested.submit(submission(tmp_path))

    tested.submit(submission(tmp_path, "a2", after=["one"]))

    assert layer.after == (Dependency("1"),)


def test_a_dependency_refuses_text_that_cannot_be_an_id(tmp_path: Path, scheduler: FakeScheduler) -> None:
    waiting = JobSpec("/bin/true", directory=tmp_path, attributes=JobAttributes(after=["two", "one"]))

    assert engine(tmp_path, scheduler, ForeignSpelling()).refused(waiting) == [
        "attributes.after: ids are numbers"
    ]


def test_hooks_get_only_native_ids(tmp_path: Path, scheduler: FakeScheduler) -> None:
    """Commands take other texts for patterns, for options, or for all jobs."""
    layer = QueriedIdsRecorder()
    backend = engine(tmp_path, scheduler, layer)._backend

    assert backend.query_states(["unnamed.9", "17", "two"]) == {}
    assert backend.query_accounting(["unnamed.9", "18"]) == {}
    assert backend.cancel(["two", "1"])["two"] == "'two' is no native id here"
    assert layer.queried == [["17"], ["18"], ["1"]]


def test_no_hook_is_called_without_an_id(tmp_path: Path, scheduler: FakeScheduler) -> None:
    layer = QueriedIdsRecorder()
    backend = engine(tmp_path, scheduler, layer)._backend

    assert backend.query_states(["two"]) == {}
    assert backend.query_accounting(["two"]) == {}
    assert backend.cancel(["two"]) == {"two": "'two' is no native id here"}
    assert layer.queried == []


def test_elements_are_not_looked_at_one_by_one(tmp_path: Path, scheduler: FakeScheduler) -> None:
    """There may be a hundred thousand elements, and hooks spell their ids themselves."""
    layer = CanonicalIdsRecorder()
    backend = engine(tmp_path, scheduler, layer)._backend

    elements = backend.element_ids("17", range(1, 1001))
    backend.query_states(elements)

    assert layer.spelled == ["17.1"]


def test_an_accepted_array_keeps_its_jobs_if_the_plugin_cannot_check_their_ids(
    tmp_path: Path, scheduler: FakeScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    tested = engine(tmp_path, scheduler, FailingElementIds())
    reported: dict[str, object] = {}

    tested.submit_many([submission(tmp_path, it) for it in ("a1", "a2")], reported.update)

    assert reported == {"a1": "1.1", "a2": "1.2"}
    assert tested.native_ids() == ["1.1", "1.2"]
    assert "toy: the plugin cannot check the id 1.1" in caplog.text


def test_ids_that_are_no_longer_queried_are_forgotten(tmp_path: Path, scheduler: FakeScheduler) -> None:
    layer = CanonicalIdsRecorder()
    backend = engine(tmp_path, scheduler, layer)._backend
    backend.element_ids("17", range(1, 1001))

    backend.query_states(["17.1"])

    assert backend._known_ids == {"17.1"}


def test_ids_have_one_spelling_unless_a_backend_has_several() -> None:
    assert default_hooks.canonical_id("4711.pbs") == "4711.pbs"


_HOOKS = """

@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    return ANSWER
"""


def _answering(text: str) -> str:
    return Path(toy.__file__).read_text() + _HOOKS.replace("ANSWER", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_answering("[f'{native_id}_{it}' for it in indices]"), ["17_1", "17_2"]),
        (_answering("1 / 0"), ["17[1]", "17[2]"]),
        (_answering("17"), ["17[1]", "17[2]"]),
        (_answering("['17_1']"), ["17[1]", "17[2]"]),
        (_answering("['17_1', '17_1']"), ["17[1]", "17[2]"]),
        (_answering("['17_1', '-2']"), ["17[1]", "17[2]"]),
        ("raise RuntimeError", ["17[1]", "17[2]"]),
        (None, ["17[1]", "17[2]"]),
    ],
    ids=[
        "as it says",
        "a hook that fails",
        "no answer",
        "too few ids",
        "the same id twice",
        "no id",
        "a module that fails",
        "not installed",
    ],
)
def test_elements_have_ids_whatever_is_wrong_with_the_plugin(
    plugin_directory: PluginDirectory, text: str | None, expected: list[str]
) -> None:
    if text is not None:
        plugin_directory.add(
            "jpsi-odd",
            "0.1",
            entry_points={"jpsi.executors": {"odd": "jpsi_odd"}},
            files={"jpsi_odd.py": text},
        )

    assert id_spelling.element_id_speller("odd", None)("17", [1, 2]) == expected
