"""The tags in Grid Engine's output, and recorded output that is truncated, repeated or garbled."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridengine_support import listing, recordings, row, twice_recorded
from jpsi.plugin import CommandResult, JobState, NotOffered, Observation, SubmitException
from jpsi_gridengine import fake, hooks
from jpsi_testing import Recording, command_result
from jpsi_testing.fake import FakeClock, FakeScheduler, Invocation, Outcome, answer

STEPS = recordings("identity")
TAG = "jpsi-0b9e6f0e-0000-4000-a000-00000000000"
TAGS = {"26": f"{TAG}1-1", "27": "", "28": f"{TAG}2-1", "29": f"{TAG}3-1", "30": f"{TAG}4-1", "31": ""}
TAGS |= {"32": f"{TAG}5-1", "33": f"{TAG}6-1"}

# The jobs in the names passed to qdel; 9 and 999999 are no jobs.
DELETED = {
    "no such name": ["9"],
    "by names, one of which is unknown": ["28", "9", "999999"],
    "tasks by names": ["29.4", "29.5", "30.1", "31"],
    "no such task": ["29.99"],
    "no such tasks": ["29.98", "29.99"],
    "deleted by its name": ["28"],
    "another user's, by its name": ["26"],
    "that runs, by its name": ["26"],
}

_Observations = Mapping[str, Observation]


def _listed(note: str) -> CommandResult:
    (step,) = (it for it in STEPS if it.argv[0] == "qstat" and it.note == note)
    return step.result


def _shortened(result: CommandResult) -> CommandResult:
    """Return a listing with only two rows of running jobs, so that every change of it can be tried."""
    rows = re.findall(r' *<job_list state="running">.*?</job_list>\n', result.stdout, re.DOTALL)
    assert len(rows) > 2
    return command_result(re.sub("|".join(map(re.escape, rows[2:])), "", result.stdout))


def _accounts() -> list[Recording]:
    return [step for step in STEPS if step.argv[0] == "/bin/sh"]


def _finished(result: CommandResult, native_ids: list[str]) -> _Observations:
    found = hooks.parse_finished(result, native_ids)
    assert not isinstance(found, NotOffered)
    return found


def test_a_listing_has_the_tag_of_each_job() -> None:
    found = hooks.parse_status(_listed("of each kind one"), None)

    assert set(found) == {"26", "28", "31", "32", "33", "30.1", *(f"29.{task}" for task in range(3, 21))}
    assert {it: seen.tag for it, seen in found.items()} == {it: TAGS[it.partition(".")[0]] for it in found}


def test_accounts_have_the_tag_of_each_job() -> None:
    for step in _accounts():
        native_ids = step.argv[5:]
        found = _finished(step.result, [*native_ids])
        if "26" in native_ids:
            assert set(found) >= {"26", "27", "29.1", "29.2"}, step
            assert not set(found) & {"28", "33", "999999"}, step
        assert {it: seen.tag for it, seen in found.items()} == {
            it: TAGS[it.partition(".")[0]] for it in found
        }


def test_queue_and_accounting_agree_when_a_job_was_submitted() -> None:
    listed = listing(row(17, "qw", "a", "<JB_submission_time>2026-11-23T02:22:13</JB_submission_time>"))
    text = _accounts()[0].result.stdout
    (recorded,) = {
        it[1] for it in re.finditer(r"^jobnumber +27 *\n(?:\w.*\n)*?qsub_time +(.*?) *\n", text, re.MULTILINE)
    }
    found = _finished(_accounts()[0].result, ["27"])["27"].submitted

    assert hooks.parse_status(listed, None)["17"].submitted == datetime(2026, 11, 23, 2, 22, 13, tzinfo=UTC)
    assert found is not None
    assert found.strftime("%a %b %d %H:%M:%S %Y") == recorded
    held = hooks.parse_status(_listed("of each kind one"), None)["28"]
    assert held.submitted == datetime(2026, 11, 23, 2, 22, 13, tzinfo=UTC)


def test_the_time_of_a_requeue_is_not_the_submit_time() -> None:
    """Grid Engine 8.1.9 forgets the first: at 02:22:16 that job was only pending."""
    before, after = (hooks.parse_status(_listed(it), None)["33"] for it in ("of each kind one", "nothing"))

    assert before.submitted == datetime(2026, 11, 23, 2, 22, 16, tzinfo=UTC)
    assert (after.native_state, after.submitted) == ("Rq", None)
    (step,) = (it for it in recordings("qstat-qacct") if it.argv == ("qacct", "-j", "274"))
    seen = _finished(twice_recorded(step.result), ["274"])["274"]
    assert seen.submitted == datetime(2026, 11, 21, 9, 0, 18, tzinfo=UTC)


# The parts of an Observation that must not change; a state may become an unknown one.
def _is_same(found: _Observations, whole: _Observations) -> bool:
    return found.keys() == whole.keys() and all(
        it.state in {None, whole[name].state} and it.tag == whole[name].tag for name, it in found.items()
    )


def _accepted(
    read: Callable[[str], _Observations], texts: Iterator[str]
) -> Iterator[tuple[str, _Observations]]:
    """Yield the texts that are not refused, with their Observations."""
    for text in texts:
        with contextlib.suppress(SubmitException):
            yield text, read(text)


@pytest.fixture(params=["of each kind one", "some deleted", "nothing"])
def queue(request: pytest.FixtureRequest) -> tuple[str, Callable[[str], _Observations]]:
    """Return a listing and the function that parses it."""
    result = _listed(request.param)
    result = result if request.param == "nothing" else _shortened(result)
    native_ids = list(hooks.parse_status(result, None))
    assert native_ids
    return result.stdout, lambda text: hooks.parse_status(command_result(text), native_ids)


def _cuts(text: str) -> Iterator[str]:
    return (text[:end] for end in range(len(text)))


def _garbled(text: str, by: str) -> Iterator[str]:
    return (text[:at] + by + text[at + 1 :] for at in range(len(text)) if text[at] != by)


def test_a_truncated_listing_is_refused(queue: tuple[str, Callable[[str], _Observations]]) -> None:
    text, read = queue

    accepted = [cut for cut, _ in _accepted(read, _cuts(text))]

    # all is there but what ends its last line
    assert [cut for cut in accepted if not cut.rstrip().endswith("</job_info>\n</job_info>")] == []
    assert all(read(cut) == read(text) for cut in accepted)


@pytest.mark.parametrize("by", ["~", "<", "\n", "\0"], ids=repr)
def test_a_garbled_listing_reports_nothing_wrong(
    queue: tuple[str, Callable[[str], _Observations]], by: str
) -> None:
    """The garbling characters occur in no number and no tag; another number would be another job."""
    text, read = queue
    whole = read(text)

    assert [
        garbled for garbled, found in _accepted(read, _garbled(text, by)) if not _is_same(found, whole)
    ] == []


@given(data=st.data())
def test_no_garbled_listing_gives_a_job_the_tag_of_another(data: st.DataObject) -> None:
    """A changed job number hides a job, which only the next query can detect."""
    text = _shortened(_listed("of each kind one")).stdout
    at = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:at] + data.draw(st.characters()) + text[at + 1 :]

    for _, found in _accepted(lambda it: hooks.parse_status(command_result(it), None), iter([garbled])):
        whole = hooks.parse_status(command_result(text), None)
        assert [it for it in found.keys() & whole.keys() if found[it].tag != whole[it].tag] == []
        assert not any(seen.final for seen in found.values())


def test_a_listing_with_a_missing_or_repeated_line_reports_nothing_wrong(
    queue: tuple[str, Callable[[str], _Observations]],
) -> None:
    text, read = queue
    lines, whole = text.splitlines(keepends=True), read(text)
    missing = ("".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines)))
    double = ("".join([*lines[:at], lines[at], *lines[at:]]) for at in range(len(lines)))

    for texts in (missing, double):
        assert [
            corrupted_documents
            for corrupted_documents, found in _accepted(read, texts)
            if not _is_same(found, whole)
        ] == []


def test_rows_that_run_into_each_other_are_refused() -> None:
    """One of the two jobs would be missing."""
    text = _listed("of each kind one").stdout
    between = [it.span() for it in re.finditer(r" *</job_list>\n *<job_list .*>\n", text)]
    assert between

    for start, end in between:
        with pytest.raises(SubmitException, match="twice"):
            hooks.parse_status(command_result(text[:start] + text[end:]), None)


def test_a_repeated_listing_is_refused() -> None:
    text = _listed("of each kind one").stdout

    for corrupted_documents in (text * 2, text + text[len(text) // 2 :], text[: len(text) // 2] + text):
        with pytest.raises(SubmitException):
            hooks.parse_status(command_result(corrupted_documents), None)
    assert hooks.parse_status(command_result(f"Welcome <b>12</b>!\n{text}\n"), None)


@pytest.mark.parametrize(
    "step", [it for it in _accounts() if len(it.result.stdout) < 6000], ids=lambda it: " ".join(it.argv[4:])
)
class TestAccounts:
    """Output that qacct was recorded to print, twice: refused, or read with the whole Observations."""

    def test_truncated_output_is_refused(self, step: Recording) -> None:
        self._assert_same_or_none(step, _cuts(step.result.stdout))

    @pytest.mark.parametrize("by", ["~", "\n", "0", "7", " "], ids=repr)
    def test_garbled_output_is_refused(self, step: Recording, by: str) -> None:
        self._assert_same_or_none(step, _garbled(step.result.stdout, by))

    def test_output_with_a_missing_or_repeated_line_is_refused(self, step: Recording) -> None:
        lines = step.result.stdout.splitlines(keepends=True)
        missing = ["".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]
        double = ["".join([*lines[:at], lines[at], *lines[at:]]) for at in range(len(lines))]

        self._assert_same_or_none(step, iter([*missing, *double, step.result.stdout * 2, ""]))

    def test_text_printed_by_the_site_is_skipped(self, step: Recording) -> None:
        self._assert_same_or_none(step, iter([f"Welcome 12\n{step.result.stdout}"]), count=1)

    def _assert_same_or_none(self, step: Recording, texts: Iterator[str], count: int = 0) -> None:
        native_ids = [*step.argv[5:]]
        whole = _finished(step.result, native_ids)
        found = [
            (text, observations)
            for text, observations in _accepted(
                lambda it: _finished(attrs.evolve(step.result, stdout=it), native_ids), texts
            )
        ]
        assert len(found) >= count
        assert [text for text, observations in found if observations != whole] == []


@pytest.mark.parametrize("step", _accounts(), ids=lambda it: " ".join(it.argv[4:]))
def test_accounts_truncated_at_the_end_of_a_line_are_refused(step: Recording) -> None:
    native_ids = [*step.argv[5:]]
    text = step.result.stdout
    second = text.rindex(" accounts")

    for end in (it.end() for it in re.finditer("\n", text[:second])):
        with pytest.raises(SubmitException):
            hooks.parse_finished(attrs.evolve(step.result, stdout=text[:end]), native_ids)


@given(text=st.text(), which=st.sampled_from(["parse_status", "parse_finished"]))
def test_random_text_is_refused(text: str, which: str) -> None:
    with pytest.raises(SubmitException):
        getattr(hooks, which)(command_result(text), ["26"])


def test_an_account_that_hides_that_a_job_is_an_array_is_refused() -> None:
    with pytest.raises(SubmitException, match="no tasks of the array 17"):
        hooks.parse_status(listing(row(17)), ["17.1"])
    with pytest.raises(SubmitException, match="two names"):
        hooks.parse_status(listing(row(17), row(17, "r", "b")), None)


def test_jobs_are_cancelled_by_the_names_with_their_tags() -> None:
    seen = hooks.parse_status(_listed("of each kind one"), None)
    native_ids = ["26", "27", "29.3", "29.4", "29.7", "30.1", "31"]

    assert hooks.cancel(native_ids, seen).argv == (
        *("qdel", f"a_name.{TAG}1-1", "27", "31"),
        *(f"{TAG}3-1", "-t", "3-4", f"{TAG}3-1", "-t", "7", f"{TAG}4-1", "-t", "1"),
    )
    assert hooks.cancel(native_ids, {}).argv == ("qdel", "26", "27", "31", "29.3-4", "29.7", "30.1")


@pytest.mark.parametrize("name", ["*", "-u", "a b.jpsi-1-1", "17.jpsi-1-1", "[ab].jpsi-1-1", "jpsi-1-1,*"])
def test_a_name_without_a_tag_cancels_no_job(name: str) -> None:
    seen = hooks.parse_status(listing(row(17, "r", name)), None)

    assert hooks.cancel(["17"], seen).argv == ("qdel", "17")


def _deletions() -> list[Recording]:
    return [it for it in STEPS if it.argv[0] == "qdel" and "-u" not in it.argv]


@pytest.mark.parametrize("step", _deletions(), ids=lambda it: it.note)
def test_a_job_unknown_by_name_has_ended(step: Recording) -> None:
    ids = DELETED[step.note]

    assert hooks.parse_cancel(step.result, ids) == {}
    assert set(hooks.parse_cancel(attrs.evolve(step.result, timed_out=True), [*ids, "4"])) >= {"4"}
    # a job without a message, though qdel prints one for each argument
    if step.result.returncode:
        assert set(hooks.parse_cancel(step.result, [*ids, "4"])) >= {"4"}


def test_the_fake_deletes_by_names_with_the_recorded_messages() -> None:
    with FakeScheduler(FakeClock(), slots=20, outcome=Outcome(seconds=600)) as scheduler:
        numbers: dict[str, str] = {}
        for step in STEPS:
            if step.argv[0] == "qsub":
                call = Invocation(argv=step.argv, stdin=step.stdin or "", environment={"PATH": "/bin"})
                recorded = re.match(r"\d+", step.result.stdout)
                assert recorded is not None
                numbers[answer(scheduler, fake, call).stdout.partition(".")[0].strip()] = recorded[0]
        owner = scheduler.jobs[0].owner
        for step in _deletions():
            if step.note == "another user's, by its name":
                continue
            words = [next((own for own, it in numbers.items() if it == word), word) for word in step.argv]
            result = answer(scheduler, fake, Invocation(argv=words, environment={"PATH": "/bin"}))
            output = result.stdout.replace(owner, "jpsi-ci")
            for own, number in numbers.items():
                output = re.sub(rf"\b(job|task) {own}\b", rf"\1 {number}", output)
            assert (result.returncode, output) == (step.result.returncode, step.result.stdout), step


def test_the_fake_lists_foreign_jobs_without_a_tag() -> None:
    with FakeScheduler(FakeClock(), outcome=Outcome(seconds=600)) as scheduler:
        call = Invocation(argv=["qsub", "-N", f"a.{TAG}1-1"], stdin="true\n", environment={"PATH": "/bin"})
        native_id = answer(scheduler, fake, call).stdout.split()[2]
        command = hooks.query()

        def seen() -> Observation:
            result = answer(scheduler, fake, Invocation(argv=command.argv))
            return hooks.parse_status(result, [native_id])[native_id]

        assert seen().tag == f"{TAG}1-1"
        scheduler.reuse_native_id(native_id)
        assert (seen().tag, seen().state) == ("", JobState.ACTIVE)
