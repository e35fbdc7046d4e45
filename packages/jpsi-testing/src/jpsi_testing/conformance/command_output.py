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
from jpsi_testing.conformance.hook_caller import TAG, Hooks
from jpsi_testing.conformance.hooks import HookTests
from jpsi_testing.fake import (
    FakeClock,
    FakeScheduler,
    FakeState,
    FakeSystem,
    Invocation,
    Outcome,
    answer,
    find_fake,
    on_path,
)

# The number of elements of an array.
_COUNT = 12


class OutputTests(HookTests):
    """Tests in which the fake answers each command, and its jobs are only simulated."""

    @pytest.fixture
    def simulated(self) -> tuple[FakeScheduler, FakeSystem]:
        """Return a fake batch system that simulates its jobs, and the functions that answer its commands."""
        if self.fake_system is None:
            pytest.skip("the tests run without a fake (dialect is None)")
        found = find_fake(self.fake_system)
        return FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60)), found

    def test_an_unreachable_batch_system_is_an_error(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        """An empty answer would mean that every job is gone."""
        scheduler, _ = simulated
        scheduler.faults.down()
        result = self._call(simulated, hooks("query", native_ids=["1"]))

        with pytest.raises(SubmitException):
            hooks("parse_status", result=result, native_ids=["1"])

    def test_a_job_is_found_by_its_tag_and_id(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        native_id = self._submit(hooks, simulated)

        observed = self._observe(hooks, simulated, native_id)[native_id]
        assert observed.state in {JobState.QUEUED, JobState.ACTIVE}
        assert observed.exists
        command = hooks("find", tags=[TAG, "jpsi-none-1"]) if hooks.has("find") else None
        if command is not None and not isinstance(command, NotOffered):
            result = self._call(simulated, command)
            assert hooks("parse_find", result=result, tags=[TAG, "jpsi-none-1"]) == {TAG: native_id}

    def test_an_unknown_job_is_not_mentioned(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        native_id = self._submit(hooks, simulated)

        assert self.unknown_id not in self._observe_existing(hooks, simulated, native_id, self.unknown_id)

    def test_status_carries_the_tag_of_the_job(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        """An observation has the tag that the job carries; for a stranger's job, an empty one."""
        scheduler, _ = simulated
        own, others = self._submit(hooks, simulated), self._submit(hooks, simulated)
        scheduler.reuse_native_id(others)

        observed = self._observe_existing(hooks, simulated, own, others)
        assert observed[own].tag == TAG
        assert observed[others].tag == "", "a job that carries no tag is a stranger's"
        everything = hooks("parse_status", result=self._query(hooks, simulated, None), native_ids=None)
        assert {it: everything[it].tag for it in (own, others) if it in everything}[own] == TAG

    def test_accounting_carries_the_tag_of_the_job(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        """An account has the tag, or the time of submission, which the queue reports too."""
        scheduler, _ = simulated
        native_id = self._submit(hooks, simulated)
        queued = self._observe_existing(hooks, simulated, native_id)[native_id]
        command = hooks("query_finished", native_ids=[native_id]) if hooks.has("query_finished") else None
        if command is None or isinstance(command, NotOffered):
            pytest.skip("it has no accounting")
        assert scheduler.wait_for(lambda: True, 0)
        scheduler.end_as(native_id, FakeState.COMPLETED)

        result = self._call(simulated, command)
        account = hooks("parse_finished", result=result, native_ids=[native_id])[native_id]

        if account.tag is None:
            assert account.submitted is not None
            assert account.submitted == queued.submitted
        else:
            assert account.tag == TAG

    @pytest.mark.clause("python-polling")
    @pytest.mark.parametrize("which", ["one job", "several jobs", "all jobs", "an array", "accounting"])
    def test_truncated_output_is_an_error(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], which: str
    ) -> None:
        """A hook parses output that is cut anywhere like the whole output, or refuses it."""
        native_ids, result, hook = self._query_output(hooks, simulated, which)
        expected = hooks(hook, result=result, native_ids=native_ids)
        assert expected

        for end in range(len(result.stdout)):
            cut = attrs.evolve(result, stdout=result.stdout[:end])
            with contextlib.suppress(SubmitException, ValueError):
                parsed = hooks(hook, result=cut, native_ids=native_ids)
                assert parsed == expected, f"the answer was cut to {cut.stdout[-200:]!r}"

    @pytest.mark.parametrize("which", ["one job", "several jobs", "all jobs", "an array", "accounting"])
    def test_garbled_output_gives_no_wrong_status(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], which: str
    ) -> None:
        """A hook refuses garbled output, or misses no job in it and reports no end that did not happen."""
        native_ids, result, hook = self._query_output(hooks, simulated, which)
        expected = hooks(hook, result=result, native_ids=native_ids)
        lines = result.stdout.splitlines(keepends=True)
        garbled = (_garble(result.stdout, at) for at in range(0, len(result.stdout), 7))
        complete = [result.stdout * 2, *garbled]
        shortened = ["".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]

        for stdout in (*complete, *shortened):
            with contextlib.suppress(SubmitException, ValueError):
                parsed = hooks(hook, result=attrs.evolve(result, stdout=stdout), native_ids=native_ids)
                for native_id, before in expected.items():
                    found = parsed.get(native_id)
                    # not every format shows that a whole line is missing
                    assert found is not None or stdout in shortened, f"{native_id} is missing: {stdout!r}"
                    is_changed = found is not None and found.final and found.tag in {None, before.tag}
                    assert not is_changed or found.state is before.state, f"{native_id}: {found}"

    @pytest.mark.clause("python-polling")
    def test_an_unknown_id_does_not_hide_the_known(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        """The exit code does not matter: jpsi asks for forgotten jobs together with all the others."""
        native_id, unknown = self._submit(hooks, simulated), self.unknown_id

        for native_ids in ([native_id, unknown], [unknown, native_id], [unknown]):
            try:
                observed = self._observe_existing(hooks, simulated, *native_ids)
            except (SubmitException, ValueError) as e:
                pytest.fail(
                    f"asked for {native_ids}, of which {unknown} is unknown, parse_status raised: {e}"
                )
            known = [it for it in native_ids if it in observed]
            assert known == [it for it in native_ids if it == native_id], f"asked for {native_ids}"

    def test_cancelling_an_ended_or_forgotten_job_is_no_error(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        scheduler, _ = simulated
        native_id = self._submit(hooks, simulated)
        scheduler.end_as(native_id, FakeState.COMPLETED)
        assert self._cancel_failures(hooks, simulated, [native_id]) == {}, "it has ended already"
        scheduler.vanish(native_id)

        assert self._cancel_failures(hooks, simulated, [native_id]) == {}, "the batch system has forgotten it"
        running = self._submit(hooks, simulated)
        assert self._cancel_failures(hooks, simulated, [self.unknown_id, running]) == {}, (
            "one of them is unknown"
        )
        assert scheduler.job(running).state is FakeState.CANCELLED, (
            "the unknown id prevented the cancellation of the other job"
        )

    @pytest.mark.clause("state-unmapped")
    def test_an_unknown_state_word_is_no_state(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        native_id = self._submit(hooks, simulated)
        result = self._call(simulated, hooks("query", native_ids=[native_id]))
        word = hooks("parse_status", result=result, native_ids=[native_id])[native_id].word
        strange = CommandResult(
            returncode=result.returncode,
            stdout=re.sub(rf"\b{re.escape(word)}\b", "XYZZY", result.stdout),
            stderr=result.stderr,
        )

        observed = hooks("parse_status", result=strange, native_ids=[native_id]).get(native_id)

        assert observed is None or observed.state is None, f"taken for {observed}"

    def test_truncated_array_rows_give_no_wrong_status(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]
    ) -> None:
        """The first element runs and the others wait, so that no word is true of all."""
        native_ids = self._submit_array(hooks, simulated)
        result = self._call(simulated, hooks("query", native_ids=self._queryable_ids(hooks, native_ids)))
        expected = hooks("parse_status", result=result, native_ids=native_ids)
        assert {it.state for it in expected.values()} >= {JobState.QUEUED, JobState.ACTIVE}, result

        for end in range(len(result.stdout)):
            cut = attrs.evolve(result, stdout=result.stdout[:end])
            with contextlib.suppress(SubmitException, ValueError):
                parsed = hooks("parse_status", result=cut, native_ids=native_ids)
                wrong = {
                    it: before
                    for it, before in parsed.items()
                    if before.state not in {None, expected[it].state}
                }
                assert not wrong, f"of {cut.stdout[-200:]!r}"

    def _submit(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], context: SubmitContext | None = None
    ) -> str:
        spec = JobSpec("/bin/true", name="a name")
        context = context or hooks.context
        script = hooks.script(spec, context)
        result = self._call(simulated, hooks("submit", script=script, spec=spec, context=context))
        assert result.returncode == 0, result
        return str(hooks("parse_submit", result=result, context=context))

    def _submit_array(self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem]) -> list[str]:
        """Submit an array whose first element runs while the others wait; return the elements' native ids."""
        offered = hooks("capabilities") if hooks.has("capabilities") else None
        if offered is None or offered.arrays is None:
            pytest.skip("it has no arrays")
        native_id = self._submit(hooks, simulated, attrs.evolve(hooks.context, elements=_COUNT))
        indices = range(1, 1 + _COUNT)
        if not hooks.has("element_ids"):
            # the core's default
            return [f"{native_id}[{index}]" for index in indices]
        return list(hooks("element_ids", native_id=native_id, indices=indices))

    @staticmethod
    def _queryable_ids(hooks: Hooks, native_ids: Sequence[str]) -> list[str]:
        """Return the native ids with arrays in place of their elements."""
        arrays = hooks("arrays_of", native_ids=native_ids) if hooks.has("arrays_of") else {}
        return list(dict.fromkeys(arrays.get(it, it) for it in native_ids))

    def _observe(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], *native_ids: str
    ) -> Mapping[str, Observation]:
        result = self._call(simulated, hooks("query", native_ids=list(native_ids)))
        found: Mapping[str, Observation] = hooks("parse_status", result=result, native_ids=list(native_ids))
        return found

    def _observe_existing(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], *native_ids: str
    ) -> dict[str, Observation]:
        """Return the observations of jobs, without those that say that there is no such job."""
        return {name: it for name, it in self._observe(hooks, simulated, *native_ids).items() if it.exists}

    def _query(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], native_ids: Sequence[str] | None
    ) -> CommandResult:
        return self._call(simulated, hooks("query", native_ids=native_ids))

    def _query_output(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], which: str
    ) -> tuple[list[str] | None, CommandResult, str]:
        """Return native ids, the output of a command about them, and the name of the hook that parses it."""
        if which == "an array":
            elements = self._submit_array(hooks, simulated)
            return (
                elements,
                self._query(hooks, simulated, self._queryable_ids(hooks, elements)),
                "parse_status",
            )
        native_ids = [self._submit(hooks, simulated) for _ in range(1 if which == "one job" else 3)]
        if which == "all jobs":
            return None, self._query(hooks, simulated, None), "parse_status"
        if which != "accounting":
            return native_ids, self._query(hooks, simulated, native_ids), "parse_status"
        command = hooks("query_finished", native_ids=native_ids) if hooks.has("query_finished") else None
        if command is None or isinstance(command, NotOffered):
            pytest.skip("it has no accounting")
        scheduler, _ = simulated
        for native_id in native_ids:
            scheduler.end_as(native_id, FakeState.COMPLETED)
        return native_ids, self._call(simulated, command), "parse_finished"

    def _cancel_failures(
        self, hooks: Hooks, simulated: tuple[FakeScheduler, FakeSystem], native_ids: Sequence[str]
    ) -> Mapping[str, str]:
        result = self._call(simulated, hooks("cancel", native_ids=native_ids))
        if not hooks.has("parse_cancel"):
            # the core's default
            return {} if result.returncode == 0 else dict.fromkeys(native_ids, result.complaint)
        found: Mapping[str, str] = hooks("parse_cancel", result=result, native_ids=native_ids)
        return found

    @staticmethod
    def _call(simulated: tuple[FakeScheduler, FakeSystem], command: Command) -> CommandResult:
        scheduler, fake_system = simulated
        if posixpath.basename(command.argv[0]) not in fake_system.commands:
            return _run_program(simulated, command)
        environment = {"PATH": "/usr/bin:/bin", **command.environment}
        invocation = Invocation(argv=command.argv, stdin=command.stdin or "", environment=environment)
        return answer(scheduler, fake_system, invocation)


def _garble(text: str, at: int) -> str:
    """Return the text with the character at this position replaced."""
    return text[:at] + ("~" if text[at] != "~" else "#") + text[at + 1 :]


def _run_program(simulated: tuple[FakeScheduler, FakeSystem], command: Command) -> CommandResult:
    """Run a program that calls the fake's commands, such as a shell, and return its result."""
    scheduler, fake_system = simulated
    with on_path(fake_system, scheduler):
        done = subprocess.run(
            command.argv,
            check=False,
            capture_output=True,
            env={**os.environ, **command.environment},
            input=command.stdin or "",
            text=True,
        )
    return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)
