"""Conformance tests of a backend's hooks on its fake: how they parse the output of its commands."""

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
from jpsi_testing.strategies import HOSTILE

# The number of elements of an array.
_COUNT = 12
# The texts of a job's spec that name something, and where a job of a fake has them.
_TEXTS = [("name", "name"), ("queue_name", "queue"), ("project_name", "project")]


@attrs.frozen(slots=True)
class SimulatedSystem:
    """A fake batch system whose jobs are only simulated, and the hooks of its backend."""

    hooks: Hooks
    _fake_system: FakeSystem
    scheduler: FakeScheduler = attrs.field(
        factory=lambda: FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60)), init=False
    )

    def submit(self, context: SubmitContext | None = None) -> str:
        """Submit a job, and return its native id."""
        native_id = self.submit_unless_refused(JobSpec("/bin/true", name="a name"), context)
        assert native_id is not None, "a job with no more than a name was refused"
        return native_id

    def submit_unless_refused(self, spec: JobSpec, context: SubmitContext | None = None) -> str | None:
        """Submit a job, and return its native id; None if the backend or the batch system refuses it."""
        context = context or self.hooks.context
        script = self.hooks.script(spec, context)
        if script is None or list(self.hooks.get("check_spec", (), spec=spec)):
            return None
        result = self.call(self.hooks("submit", script=script, spec=spec, context=context))
        return (
            str(self.hooks("parse_submit", result=result, context=context)) if not result.returncode else None
        )

    def submit_array(self) -> list[str]:
        """Submit an array whose first element runs while the others wait; return the elements' native ids."""
        offered = self.hooks.get("capabilities")
        if offered is None or offered.arrays is None:
            pytest.skip("it has no arrays")
        native_id = self.submit(attrs.evolve(self.hooks.context, elements=_COUNT))
        indices = range(1, 1 + _COUNT)
        if not self.hooks.has("element_ids"):
            # the core's default
            return [f"{native_id}[{index}]" for index in indices]
        return list(self.hooks("element_ids", native_id=native_id, indices=indices))

    def query(self, native_ids: Sequence[str] | None) -> CommandResult:
        """Return the answer about jobs, with arrays in place of their elements; None is all jobs."""
        if native_ids is not None and self.hooks.has("arrays_of"):
            arrays = self.hooks("arrays_of", native_ids=native_ids)
            native_ids = list(dict.fromkeys(arrays.get(it, it) for it in native_ids))
        return self.call(self.hooks("query", native_ids=native_ids))

    def observe(self, *native_ids: str) -> dict[str, Observation]:
        """Return the observations of jobs, without those that say that there is no such job."""
        found = self.hooks("parse_status", result=self.query(native_ids), native_ids=list(native_ids))
        return {name: it for name, it in found.items() if it.exists}

    def answer(self, hook: str, **values: object) -> CommandResult | None:
        """Return the answer to the command of an optional hook; None if the backend does not offer it."""
        command = self.hooks.get(hook, **values)
        return None if command is None or isinstance(command, NotOffered) else self.call(command)

    def answer_about_finished(self, native_ids: Sequence[str]) -> CommandResult:
        """End jobs, and return the answer of the accounting."""
        for native_id in native_ids:
            self.scheduler.end_as(native_id, FakeState.COMPLETED)
        result = self.answer("query_finished", native_ids=native_ids)
        if result is None:
            pytest.skip("it has no accounting")
        return result

    def query_output(self, which: str) -> tuple[list[str] | None, CommandResult, str]:
        """Return native ids, the output of a command about them, and the name of the hook that parses it."""
        if which == "an array":
            native_ids = self.submit_array()
        else:
            native_ids = [self.submit() for _ in range(1 if which == "one job" else 3)]
        if which == "accounting":
            return native_ids, self.answer_about_finished(native_ids), "parse_finished"
        queried = None if which == "all jobs" else native_ids
        return queried, self.query(queried), "parse_status"

    def cancel_failures(self, native_ids: Sequence[str]) -> Mapping[str, str]:
        """Cancel jobs, and return why some could not be cancelled."""
        result = self.call(self.hooks("cancel", native_ids=native_ids))
        if not self.hooks.has("parse_cancel"):
            # the core's default
            return {} if result.returncode == 0 else dict.fromkeys(native_ids, result.complaint)
        found: Mapping[str, str] = self.hooks("parse_cancel", result=result, native_ids=native_ids)
        return found

    def call(self, command: Command) -> CommandResult:
        """Return the answer to a command, which may be a shell that calls commands of the fake."""
        if posixpath.basename(command.argv[0]) in self._fake_system.commands:
            environment = {"PATH": "/usr/bin:/bin", **command.environment}
            invocation = Invocation(argv=command.argv, stdin=command.stdin or "", environment=environment)
            return answer(self.scheduler, self._fake_system, invocation)
        with on_path(self._fake_system, self.scheduler):
            done = subprocess.run(
                command.argv,
                check=False,
                capture_output=True,
                env={**os.environ, **command.environment},
                input=command.stdin or "",
                text=True,
            )
        return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


class OutputTests(HookTests):
    """Tests in which the fake answers each command, and its jobs are only simulated."""

    @pytest.fixture
    def system(self, hooks: Hooks) -> SimulatedSystem:
        """Return a fake batch system that simulates its jobs, with the hooks that read its answers."""
        if self.fake_system is None:
            pytest.skip("the tests run without a fake (fake_system is None)")
        return SimulatedSystem(hooks, find_fake(self.fake_system))

    def test_an_unreachable_batch_system_is_an_error(self, system: SimulatedSystem) -> None:
        """An empty answer would mean that every job is gone."""
        system.scheduler.faults.down()
        result = system.query(["1"])

        with contextlib.suppress(SubmitException):
            found = system.hooks("parse_status", result=result, native_ids=["1"])
            pytest.fail(f"the batch system cannot be reached, and parse_status returned {found!r}")

    def test_a_job_is_found_by_its_tag_and_id(self, system: SimulatedSystem) -> None:
        """`query` reports the job by its native id, and `find` by its tag."""
        native_id = system.submit()

        observed = system.observe(native_id)[native_id]
        assert observed.state in {JobState.QUEUED, JobState.ACTIVE}
        result = system.answer("find", tags=[TAG, "jpsi-none-1"])
        if result is not None:
            found = system.hooks("parse_find", result=result, tags=[TAG, "jpsi-none-1"])
            assert found == {TAG: native_id}, (
                f"job {native_id} has the tag {TAG}; parse_find returned {found}"
            )

    @pytest.mark.clause("state-active", "state-mapping")
    def test_a_job_that_has_not_started_is_queued(self, system: SimulatedSystem) -> None:
        """A batch system has many words for it: held, waiting for resources, for another job."""
        running, waiting, held = (system.submit() for _ in range(3))
        assert system.scheduler.hold(held)

        observed = system.observe(running, waiting, held)

        expected = {running: JobState.ACTIVE, waiting: JobState.QUEUED, held: JobState.QUEUED}
        for native_id, state in expected.items():
            found = observed[native_id]
            assert found.state is state, (
                f"the job is {state.name}: the batch system says {found.native_state!r}, "
                f"which parse_status took for {found.state.name if found.state else 'no state'}"
            )

    @pytest.mark.clause("spec-name", "attributes-queue", "attributes-project")
    @pytest.mark.parametrize(("where", "field"), _TEXTS, ids=[where for where, _ in _TEXTS])
    def test_any_text_is_passed_on_unchanged_or_is_refused(
        self, system: SimulatedSystem, where: str, field: str
    ) -> None:
        """A text reaches the batch system as it is, or the job is refused; `names` are for whole jobs."""
        system.scheduler.slots = 0
        for text in filter(None, HOSTILE):
            spec = JobSpec("/bin/true", name="n")
            setattr(spec if where == "name" else spec.attributes, where, text)
            expected = self.native_name(text) if where == "name" else text

            native_id = system.submit_unless_refused(spec)

            found = expected if native_id is None else getattr(system.scheduler.job(native_id), field)
            assert found == expected, f"with {where}={text!r} the {field} of the job is {found!r}"

    def test_an_unknown_job_is_not_mentioned(self, system: SimulatedSystem) -> None:
        """An answer leaves out a native id that the batch system does not know."""
        native_id = system.submit()

        observed = system.observe(native_id, self.unknown_id)
        assert self.unknown_id not in observed, (
            f"the batch system has no job {self.unknown_id}, and parse_status returned "
            f"{observed.get(self.unknown_id)!r} for it"
        )

    def test_status_carries_the_tag_of_the_job(self, system: SimulatedSystem) -> None:
        """An observation has the tag that the job carries; for a foreign job, an empty one."""
        own, others = system.submit(), system.submit()
        system.scheduler.reuse_native_id(others)

        observed = system.observe(own, others)
        everything = system.hooks("parse_status", result=system.query(None), native_ids=None)
        for tag in (observed[own].tag, everything[own].tag):
            assert tag == TAG, f"job {own} carries the tag {TAG}; its observation has {tag!r}"
        tag = observed[others].tag
        assert tag == "", f"a job that carries no tag is a foreign job; the tag of its observation is {tag!r}"

    def test_accounting_carries_the_tag_of_the_job(self, system: SimulatedSystem) -> None:
        """An account has the tag, or the time of submission, which the queue reports too."""
        native_id = system.submit()
        queued = system.observe(native_id)[native_id]
        result = system.answer_about_finished([native_id])

        account = system.hooks("parse_finished", result=result, native_ids=[native_id])[native_id]

        if account.tag is None:
            assert account.submitted is not None, "the account has neither the tag nor the time of submission"
            assert account.submitted == queued.submitted, (
                f"submitted at {queued.submitted} by the queue, at {account.submitted} by the accounting"
            )
        else:
            assert account.tag == TAG, f"the job carries the tag {TAG}; its account has {account.tag!r}"

    @pytest.mark.clause("python-polling")
    @pytest.mark.parametrize("which", ["one job", "several jobs", "all jobs", "an array", "accounting"])
    def test_truncated_output_is_an_error(self, system: SimulatedSystem, which: str) -> None:
        """A hook parses output that is cut anywhere like the whole output, or refuses it."""
        native_ids, result, hook = system.query_output(which)
        expected = system.hooks(hook, result=result, native_ids=native_ids)
        assert expected
        if which == "an array":
            # no word is true of all of its elements
            states = {it.state for it in expected.values()}
            assert states >= {JobState.QUEUED, JobState.ACTIVE}, f"one element runs, others wait: {result}"

        for end in range(len(result.stdout)):
            cut = attrs.evolve(result, stdout=result.stdout[:end])
            with contextlib.suppress(SubmitException, ValueError):
                parsed = system.hooks.call_again(hook, result=cut, native_ids=native_ids)
                assert parsed == expected, (
                    f"the answer was cut to {cut.stdout[-200:]!r}, and {hook} returned {parsed!r}"
                )

    @pytest.mark.parametrize("which", ["one job", "several jobs", "all jobs", "an array", "accounting"])
    def test_garbled_output_gives_no_wrong_status(self, system: SimulatedSystem, which: str) -> None:
        """A hook refuses garbled output, or misses no job in it and reports no end that did not happen."""
        native_ids, result, hook = system.query_output(which)
        expected = system.hooks(hook, result=result, native_ids=native_ids)
        lines = result.stdout.splitlines(keepends=True)
        garbled = (_garble(result.stdout, at) for at in range(0, len(result.stdout), 7))
        complete = [result.stdout * 2, *garbled]
        shortened = ["".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]

        for stdout in (*complete, *shortened):
            with contextlib.suppress(SubmitException, ValueError):
                garbled_result = attrs.evolve(result, stdout=stdout)
                parsed = system.hooks.call_again(hook, result=garbled_result, native_ids=native_ids)
                for native_id, before in expected.items():
                    found = parsed.get(native_id)
                    # not every format shows that a whole line is missing
                    assert found is not None or stdout in shortened, (
                        f"the answer is garbled, and {hook} passed over job {native_id}: {stdout!r}"
                    )
                    is_changed = found is not None and found.final and found.tag in {None, before.tag}
                    assert not is_changed or found.state is before.state, (
                        f"the answer is garbled, and {hook} ended job {native_id}: {found}"
                    )

    @pytest.mark.clause("python-polling")
    def test_an_unknown_id_does_not_hide_the_known(self, system: SimulatedSystem) -> None:
        """The exit code does not matter: jpsi asks for forgotten jobs together with all the others."""
        native_id, unknown = system.submit(), self.unknown_id

        for native_ids in ([native_id, unknown], [unknown, native_id], [unknown]):
            try:
                observed = system.observe(*native_ids)
            except (SubmitException, ValueError) as e:
                pytest.fail(
                    f"queried for {native_ids}, of which {unknown} is unknown, parse_status raised: {e}"
                )
            known = [it for it in native_ids if it in observed]
            assert known == [it for it in native_ids if it == native_id], f"queried for {native_ids}"

    def test_cancelling_an_ended_or_forgotten_job_is_no_error(self, system: SimulatedSystem) -> None:
        """The same command cancels other jobs all the same."""
        native_id = system.submit()
        system.scheduler.end_as(native_id, FakeState.COMPLETED)
        assert system.cancel_failures([native_id]) == {}, "it has ended already"
        system.scheduler.vanish(native_id)

        assert system.cancel_failures([native_id]) == {}, "the batch system has forgotten it"
        running = system.submit()
        assert system.cancel_failures([self.unknown_id, running]) == {}, "one of them is unknown"
        assert system.scheduler.job(running).state is FakeState.CANCELLED, (
            "the unknown id prevented the cancellation of the other job"
        )

    @pytest.mark.clause("state-unmapped")
    def test_an_unknown_native_state_is_no_state(self, system: SimulatedSystem) -> None:
        """The hook returns the state None, or no observation, and never guesses a state."""
        native_id = system.submit()
        result = system.query([native_id])
        known = system.hooks("parse_status", result=result, native_ids=[native_id])[native_id]
        pattern = rf"\b{re.escape(known.native_state)}\b"
        unknown = attrs.evolve(result, stdout=re.sub(pattern, "XYZZY", result.stdout))

        observed = system.hooks("parse_status", result=unknown, native_ids=[native_id]).get(native_id)

        assert observed is None or observed.state is None, (
            f"no job has the state XYZZY, and parse_status took it for {observed.state.name}"
        )


def _garble(text: str, at: int) -> str:
    """Return the text with the character at this position replaced."""
    return text[:at] + ("~" if text[at] != "~" else "#") + text[at + 1 :]
