"""Whose job an answer is about; what was recorded is no answer where it is cut, repeated or garbled."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridengine_support import answer_of, listing, recordings, row
from jpsi.plugin import CommandResult, JobState, NotOffered, Observation, SubmitException
from jpsi_gridengine import fake, hooks
from jpsi_testing import Recording, command_result
from jpsi_testing.fake import FakeClock, FakeScheduler, Invocation, Outcome, answer

STEPS = recordings("identity")
TAG = "jpsi-0b9e6f0e-0000-4000-a000-00000000000"
TAGS = {"26": f"{TAG}1-1", "27": "", "28": f"{TAG}2-1", "29": f"{TAG}3-1", "30": f"{TAG}4-1", "31": ""}
TAGS |= {"32": f"{TAG}5-1", "33": f"{TAG}6-1"}

# The jobs that were named where something was deleted; 9 and 999999 are no jobs.
MEANT = {
    "no such name": ["9"],
    "by names, one of which is unknown": ["28", "9", "999999"],
    "tasks by names": ["29.4", "29.5", "30.1", "31"],
    "no such task": ["29.99"],
    "no such tasks": ["29.98", "29.99"],
    "deleted by its name": ["28"],
    "another user's, by its name": ["26"],
    "that runs, by its name": ["26"],
}

_Told = Mapping[str, Observation]


def _listed(note: str) -> CommandResult:
    (step,) = (it for it in STEPS if it.argv[0] == "qstat" and it.note == note)
    return step.result


def _shortened(result: CommandResult) -> CommandResult:
    """A listing with the first two of the rows of those that run, so that all of it can be tried."""
    rows = re.findall(r' *<job_list state="running">.*?</job_list>\n', result.stdout, re.DOTALL)
    assert len(rows) > 2
    return command_result(re.sub("|".join(map(re.escape, rows[2:])), "", result.stdout))


def _accounts() -> list[Recording]:
    return [step for step in STEPS if step.argv[0] == "/bin/sh"]


def _finished(result: CommandResult, native_ids: list[str]) -> _Told:
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
    """8.1.9 forgets the first: at 02:22:16 that job was only waiting."""
    before, after = (hooks.parse_status(_listed(it), None)["33"] for it in ("of each kind one", "nothing"))

    assert before.submitted == datetime(2026, 11, 23, 2, 22, 16, tzinfo=UTC)
    assert (after.native_state, after.submitted) == ("Rq", None)
    (step,) = (it for it in recordings("qstat-qacct") if it.argv == ("qacct", "-j", "274"))
    seen = _finished(answer_of(step.result), ["274"])["274"]
    assert seen.submitted == datetime(2026, 11, 21, 9, 0, 18, tzinfo=UTC)


# What is told of each job that must not change: a state may become one that is not understood.
def _is_same(told: _Told, whole: _Told) -> bool:
    return told.keys() == whole.keys() and all(
        it.state in {None, whole[name].state} and it.tag == whole[name].tag for name, it in told.items()
    )


def _tried(read: Callable[[str], _Told], texts: Iterator[str]) -> Iterator[tuple[str, _Told]]:
    """What is told where it is not refused."""
    for text in texts:
        with contextlib.suppress(SubmitException):
            yield text, read(text)


@pytest.fixture(params=["of each kind one", "some deleted", "nothing"])
def queue(request: pytest.FixtureRequest) -> tuple[str, Callable[[str], _Told]]:
    """A listing, and what reads it."""
    result = _listed(request.param)
    result = result if request.param == "nothing" else _shortened(result)
    native_ids = list(hooks.parse_status(result, None))
    assert native_ids
    return result.stdout, lambda text: hooks.parse_status(command_result(text), native_ids)


def _cuts(text: str) -> Iterator[str]:
    return (text[:end] for end in range(len(text)))


def _garbled(text: str, by: str) -> Iterator[str]:
    return (text[:at] + by + text[at + 1 :] for at in range(len(text)) if text[at] != by)


def test_a_truncated_listing_is_refused(queue: tuple[str, Callable[[str], _Told]]) -> None:
    text, read = queue

    accepted = [cut for cut, _ in _tried(read, _cuts(text))]

    # all is there but what ends its last line
    assert [cut for cut in accepted if not cut.rstrip().endswith("</job_info>\n</job_info>")] == []
    assert all(read(cut) == read(text) for cut in accepted)


@pytest.mark.parametrize("by", ["~", "<", "\n", "\0"], ids=repr)
def test_a_garbled_listing_reports_nothing_wrong(queue: tuple[str, Callable[[str], _Told]], by: str) -> None:
    """By what no number and no tag has in it; another number would be another job's."""
    text, read = queue
    whole = read(text)

    assert [garbled for garbled, told in _tried(read, _garbled(text, by)) if not _is_same(told, whole)] == []


@given(data=st.data())
def test_whatever_a_listing_is_garbled_by_no_job_gets_another_ones_tag(data: st.DataObject) -> None:
    """One that looks like another job's number makes a job missing, which only another answer can show."""
    text = _shortened(_listed("of each kind one")).stdout
    at = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:at] + data.draw(st.characters()) + text[at + 1 :]

    for _, told in _tried(lambda it: hooks.parse_status(command_result(it), None), iter([garbled])):
        whole = hooks.parse_status(command_result(text), None)
        assert [it for it in told.keys() & whole.keys() if told[it].tag != whole[it].tag] == []
        assert not any(seen.final for seen in told.values())


def test_a_listing_with_a_missing_or_repeated_line_reports_nothing_wrong(
    queue: tuple[str, Callable[[str], _Told]],
) -> None:
    text, read = queue
    lines, whole = text.splitlines(keepends=True), read(text)
    missing = ("".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines)))
    double = ("".join([*lines[:at], lines[at], *lines[at:]]) for at in range(len(lines)))

    for texts in (missing, double):
        assert [
            corrupted_documents
            for corrupted_documents, told in _tried(read, texts)
            if not _is_same(told, whole)
        ] == []


def test_rows_that_run_into_each_other_are_none() -> None:
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
    """What qacct was seen to answer, twice; it is refused, or tells what the whole of it tells."""

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
            (text, told)
            for text, told in _tried(
                lambda it: _finished(attrs.evolve(step.result, stdout=it), native_ids), texts
            )
        ]
        assert len(found) >= count
        assert [text for text, told in found if told != whole] == []


@pytest.mark.parametrize("step", _accounts(), ids=lambda it: " ".join(it.argv[4:]))
def test_accounts_that_are_cut_at_the_end_of_a_line_are_none(step: Recording) -> None:
    native_ids = [*step.argv[5:]]
    text = step.result.stdout
    second = text.rindex(" accounts")

    for end in (it.end() for it in re.finditer("\n", text[:second])):
        with pytest.raises(SubmitException):
            hooks.parse_finished(attrs.evolve(step.result, stdout=text[:end]), native_ids)


@given(text=st.text(), which=st.sampled_from(["parse_status", "parse_finished"]))
def test_random_text_is_no_answer(text: str, which: str) -> None:
    with pytest.raises(SubmitException):
        getattr(hooks, which)(command_result(text), ["26"])


def test_a_word_that_hides_that_a_job_is_an_array_is_no_answer() -> None:
    with pytest.raises(SubmitException, match="no tasks of the array 17"):
        hooks.parse_status(listing(row(17)), ["17.1"])
    with pytest.raises(SubmitException, match="two names"):
        hooks.parse_status(listing(row(17), row(17, "r", "b")), None)


def test_jobs_are_cancelled_by_the_names_that_have_their_tags() -> None:
    seen = hooks.parse_status(_listed("of each kind one"), None)
    native_ids = ["26", "27", "29.3", "29.4", "29.7", "30.1", "31"]

    assert hooks.cancel(native_ids, seen).argv == (
        *("qdel", f"a_name.{TAG}1-1", "27", "31"),
        *(f"{TAG}3-1", "-t", "3-4", f"{TAG}3-1", "-t", "7", f"{TAG}4-1", "-t", "1"),
    )
    assert hooks.cancel(native_ids, {}).argv == ("qdel", "26", "27", "31", "29.3-4", "29.7", "30.1")


@pytest.mark.parametrize("name", ["*", "-u", "a b.jpsi-1-1", "17.jpsi-1-1", "[ab].jpsi-1-1", "jpsi-1-1,*"])
def test_a_name_that_jpsi_does_not_give_ends_nothing(name: str) -> None:
    seen = hooks.parse_status(listing(row(17, "r", name)), None)

    assert hooks.cancel(["17"], seen).argv == ("qdel", "17")


def _deletions() -> list[Recording]:
    return [it for it in STEPS if it.argv[0] == "qdel" and "-u" not in it.argv]


@pytest.mark.parametrize("step", _deletions(), ids=lambda it: it.note)
def test_a_job_unknown_by_name_has_ended(step: Recording) -> None:
    ids = MEANT[step.note]

    assert hooks.parse_cancel(step.result, ids) == {}
    assert set(hooks.parse_cancel(attrs.evolve(step.result, timed_out=True), [*ids, "4"])) >= {"4"}
    # one of which nothing was said, though each word is answered
    if step.result.returncode:
        assert set(hooks.parse_cancel(step.result, [*ids, "4"])) >= {"4"}


def test_the_fake_deletes_by_names_in_the_words_of_the_real_one() -> None:
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
            said = answer(scheduler, fake, Invocation(argv=words, environment={"PATH": "/bin"}))
            told = said.stdout.replace(owner, "jpsi-ci")
            for own, number in numbers.items():
                told = re.sub(rf"\b(job|task) {own}\b", rf"\1 {number}", told)
            assert (said.returncode, told) == (step.result.returncode, step.result.stdout), step


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
