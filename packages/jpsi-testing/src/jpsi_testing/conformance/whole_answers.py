"""Tests of a backend's hooks over its fake: how they parse the output of its commands."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import subprocess
from collections.abc import Mapping, Sequence

import attrs
import pytest

from jpsi import JobSpec
from jpsi.plugin import (
    Command,
    CommandResult,
    JobState,
    NotOffered,
    Observation,
    SubmitContext,
    SubmitException,
)
from jpsi_testing.conformance.asking import TAG, Hooks
from jpsi_testing.conformance.hooks import HookTests
from jpsi_testing.fake import (
    Dialect,
    FakeClock,
    FakeScheduler,
    FakeState,
    Invocation,
    Outcome,
    answer,
    on_path,
)
from jpsi_testing.fake import dialect as dialect_of

# The number of elements of an array.
_COUNT = 12


class AnswerTests(HookTests):
    """Tests in which the fake answers each command, and its jobs are only simulated."""

    @pytest.fixture
    def played(self) -> tuple[FakeScheduler, Dialect]:
        """Return a fake batch system that simulates its jobs, and the functions that answer its commands."""
        if self.dialect is None:
            pytest.skip("there is no dialect")
        found = dialect_of(self.dialect) if isinstance(self.dialect, str) else self.dialect
        return FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60)), found

    def test_no_contact_is_no_answer(self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]) -> None:
        """An empty answer would mean that every job is gone."""
        scheduler, _ = played
        scheduler.faults.down()
        result = self._call(played, hooks("query", native_ids=["1"]))

        with pytest.raises(SubmitException):
            hooks("parse_status", result=result, native_ids=["1"])

    def test_a_job_is_found_by_its_tag_and_id(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        native_id = self._submit(hooks, played)

        observed = self._observed(hooks, played, native_id)[native_id]
        assert observed.state in {JobState.QUEUED, JobState.ACTIVE}
        assert observed.exists
        command = hooks("find", tags=[TAG, "jpsi-none-1"]) if hooks.has("find") else None
        if command is not None and not isinstance(command, NotOffered):
            result = self._call(played, command)
            assert hooks("parse_find", result=result, tags=[TAG, "jpsi-none-1"]) == {TAG: native_id}

    def test_a_job_that_is_not_there_is_not_mentioned(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        native_id = self._submit(hooks, played)

        assert self.unknown_id not in self._existing(hooks, played, native_id, self.unknown_id)

    def test_an_answer_says_whose_job_it_is_about(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        """An observation has the tag that the job carries; for a stranger's job, an empty one."""
        scheduler, _ = played
        own, others = self._submit(hooks, played), self._submit(hooks, played)
        scheduler.supplant(others)

        observed = self._existing(hooks, played, own, others)
        assert observed[own].tag == TAG
        assert observed[others].tag == "", "a job that carries no tag is a stranger's"
        everything = hooks("parse_status", result=self._queried(hooks, played, None), native_ids=None)
        assert {it: everything[it].tag for it in (own, others) if it in everything}[own] == TAG

    def test_an_account_says_whose_job_it_is_about(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        """An account has the tag, or the time of submission, which the queue reports too."""
        scheduler, _ = played
        native_id = self._submit(hooks, played)
        queued = self._existing(hooks, played, native_id)[native_id]
        command = hooks("query_finished", native_ids=[native_id]) if hooks.has("query_finished") else None
        if command is None or isinstance(command, NotOffered):
            pytest.skip("it has no accounting")
        assert scheduler.wait_for(lambda: True, 0)
        scheduler.end_as(native_id, FakeState.COMPLETED)

        result = self._call(played, command)
        account = hooks("parse_finished", result=result, native_ids=[native_id])[native_id]

        if account.tag is None:
            assert account.submitted is not None
            assert account.submitted == queued.submitted
        else:
            assert account.tag == TAG

    @pytest.mark.clause("python-polling")
    @pytest.mark.parametrize("which", ["one job", "several jobs", "all jobs", "an array", "accounting"])
    def test_an_answer_that_is_cut_is_no_answer(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], which: str
    ) -> None:
        """A hook parses output that is cut anywhere like the whole output, or refuses it."""
        native_ids, result, hook = self._answered(hooks, played, which)
        whole = hooks(hook, result=result, native_ids=native_ids)
        assert whole

        for end in range(len(result.stdout)):
            cut = attrs.evolve(result, stdout=result.stdout[:end])
            with contextlib.suppress(SubmitException, ValueError):
                told = hooks(hook, result=cut, native_ids=native_ids)
                assert told == whole, f"the answer was cut to {cut.stdout[-200:]!r}"

    @pytest.mark.parametrize("which", ["one job", "several jobs", "all jobs", "an array", "accounting"])
    def test_an_answer_that_is_garbled_tells_nothing_wrong(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], which: str
    ) -> None:
        """A hook refuses garbled output, or misses no job in it and reports no end that did not happen."""
        native_ids, result, hook = self._answered(hooks, played, which)
        whole = hooks(hook, result=result, native_ids=native_ids)
        lines = result.stdout.splitlines(keepends=True)
        spoilt = (_spoilt(result.stdout, at) for at in range(0, len(result.stdout), 7))
        complete = [result.stdout * 2, *spoilt]
        shortened = ["".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]

        for stdout in (*complete, *shortened):
            with contextlib.suppress(SubmitException, ValueError):
                told = hooks(hook, result=attrs.evolve(result, stdout=stdout), native_ids=native_ids)
                for native_id, seen in whole.items():
                    found = told.get(native_id)
                    # not every format shows that a whole line is missing
                    assert found is not None or stdout in shortened, f"{native_id} is missing: {stdout!r}"
                    is_changed = found is not None and found.final and found.tag in {None, seen.tag}
                    assert not is_changed or found.state is seen.state, f"{native_id}: {found}"

    @pytest.mark.clause("python-polling")
    def test_an_unknown_id_does_not_hide_the_known(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        """The exit code does not matter: jpsi asks for forgotten jobs together with all the others."""
        native_id, unknown = self._submit(hooks, played), self.unknown_id

        for native_ids in ([native_id, unknown], [unknown, native_id], [unknown]):
            try:
                observed = self._existing(hooks, played, *native_ids)
            except (SubmitException, ValueError) as e:
                pytest.fail(
                    f"asked for {native_ids}, of which {unknown} is unknown, parse_status raised: {e}"
                )
            known = [it for it in native_ids if it in observed]
            assert known == [it for it in native_ids if it == native_id], f"asked for {native_ids}"

    def test_to_cancel_what_has_ended_or_is_forgotten_is_no_error(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        scheduler, _ = played
        native_id = self._submit(hooks, played)
        scheduler.end_as(native_id, FakeState.COMPLETED)
        assert self._not_cancelled(hooks, played, [native_id]) == {}, "it has ended already"
        scheduler.vanish(native_id)

        assert self._not_cancelled(hooks, played, [native_id]) == {}, "the batch system has forgotten it"
        running = self._submit(hooks, played)
        assert self._not_cancelled(hooks, played, [self.unknown_id, running]) == {}, "one of them is unknown"
        assert scheduler.job(running).state is FakeState.CANCELLED, "the unknown one has kept the other alive"

    @pytest.mark.clause("state-unmapped")
    def test_a_word_that_nobody_knows_is_no_state(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        native_id = self._submit(hooks, played)
        result = self._call(played, hooks("query", native_ids=[native_id]))
        word = hooks("parse_status", result=result, native_ids=[native_id])[native_id].word
        strange = CommandResult(
            returncode=result.returncode,
            stdout=re.sub(rf"\b{re.escape(word)}\b", "XYZZY", result.stdout),
            stderr=result.stderr,
        )

        observed = hooks("parse_status", result=strange, native_ids=[native_id]).get(native_id)

        assert observed is None or observed.state is None, f"taken for {observed}"

    def test_of_an_array_nothing_wrong_is_told_where_a_line_or_range_is_cut(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]
    ) -> None:
        """The first element runs and the others wait, so that no word is true of all."""
        native_ids = self._array(hooks, played)
        result = self._call(played, hooks("query", native_ids=self._askable(hooks, native_ids)))
        whole = hooks("parse_status", result=result, native_ids=native_ids)
        assert {it.state for it in whole.values()} >= {JobState.QUEUED, JobState.ACTIVE}, result

        for end in range(len(result.stdout)):
            cut = attrs.evolve(result, stdout=result.stdout[:end])
            with contextlib.suppress(SubmitException, ValueError):
                told = hooks("parse_status", result=cut, native_ids=native_ids)
                wrong = {it: seen for it, seen in told.items() if seen.state not in {None, whole[it].state}}
                assert not wrong, f"of {cut.stdout[-200:]!r}"

    def _submit(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], context: SubmitContext | None = None
    ) -> str:
        spec = JobSpec("/bin/true", name="a name")
        context = context or hooks.context
        script = hooks.script(spec, context)
        result = self._call(played, hooks("submit", script=script, spec=spec, context=context))
        assert result.returncode == 0, result
        return str(hooks("parse_submit", result=result, context=context))

    def _array(self, hooks: Hooks, played: tuple[FakeScheduler, Dialect]) -> list[str]:
        """Submit an array whose first element runs while the others wait; return the elements' native ids."""
        offered = hooks("capabilities") if hooks.has("capabilities") else None
        if offered is None or offered.arrays is None:
            pytest.skip("it has no arrays")
        native_id = self._submit(hooks, played, attrs.evolve(hooks.context, elements=_COUNT))
        indices = range(1, 1 + _COUNT)
        if not hooks.has("element_ids"):
            # the core's default
            return [f"{native_id}[{index}]" for index in indices]
        return list(hooks("element_ids", native_id=native_id, indices=indices))

    @staticmethod
    def _askable(hooks: Hooks, native_ids: Sequence[str]) -> list[str]:
        """Return the native ids with arrays in place of their elements."""
        arrays = hooks("arrays_of", native_ids=native_ids) if hooks.has("arrays_of") else {}
        return list(dict.fromkeys(arrays.get(it, it) for it in native_ids))

    def _observed(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], *native_ids: str
    ) -> Mapping[str, Observation]:
        result = self._call(played, hooks("query", native_ids=list(native_ids)))
        found: Mapping[str, Observation] = hooks("parse_status", result=result, native_ids=list(native_ids))
        return found

    def _existing(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], *native_ids: str
    ) -> dict[str, Observation]:
        """Return the observations of jobs, without those that say that there is no such job."""
        return {name: it for name, it in self._observed(hooks, played, *native_ids).items() if it.exists}

    def _queried(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], native_ids: Sequence[str] | None
    ) -> CommandResult:
        return self._call(played, hooks("query", native_ids=native_ids))

    def _answered(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], which: str
    ) -> tuple[list[str] | None, CommandResult, str]:
        """Return native ids, the output of a command about them, and the name of the hook that parses it."""
        if which == "an array":
            elements = self._array(hooks, played)
            return elements, self._queried(hooks, played, self._askable(hooks, elements)), "parse_status"
        native_ids = [self._submit(hooks, played) for _ in range(1 if which == "one job" else 3)]
        if which == "all jobs":
            return None, self._queried(hooks, played, None), "parse_status"
        if which != "accounting":
            return native_ids, self._queried(hooks, played, native_ids), "parse_status"
        command = hooks("query_finished", native_ids=native_ids) if hooks.has("query_finished") else None
        if command is None or isinstance(command, NotOffered):
            pytest.skip("it has no accounting")
        scheduler, _ = played
        for native_id in native_ids:
            scheduler.end_as(native_id, FakeState.COMPLETED)
        return native_ids, self._call(played, command), "parse_finished"

    def _not_cancelled(
        self, hooks: Hooks, played: tuple[FakeScheduler, Dialect], native_ids: Sequence[str]
    ) -> Mapping[str, str]:
        result = self._call(played, hooks("cancel", native_ids=native_ids))
        if not hooks.has("parse_cancel"):
            # the core's default
            return {} if result.returncode == 0 else dict.fromkeys(native_ids, result.complaint)
        found: Mapping[str, str] = hooks("parse_cancel", result=result, native_ids=native_ids)
        return found

    @staticmethod
    def _call(played: tuple[FakeScheduler, Dialect], command: Command) -> CommandResult:
        scheduler, dialect = played
        if posixpath.basename(command.argv[0]) not in dialect.commands:
            return _started(played, command)
        environment = {"PATH": "/usr/bin:/bin", **command.environment}
        invocation = Invocation(argv=command.argv, stdin=command.stdin or "", environment=environment)
        return answer(scheduler, dialect, invocation)


def _spoilt(text: str, at: int) -> str:
    """Return the text with the character at this position replaced."""
    return text[:at] + ("~" if text[at] != "~" else "#") + text[at + 1 :]


def _started(played: tuple[FakeScheduler, Dialect], command: Command) -> CommandResult:
    """Run a program that calls the fake's commands, such as a shell, and return its result."""
    scheduler, dialect = played
    with on_path(dialect, scheduler):
        done = subprocess.run(
            command.argv,
            check=False,
            capture_output=True,
            env={**os.environ, **command.environment},
            input=command.stdin or "",
            text=True,
        )
    return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)
