"""The fake PBS and the fake Torque: they print recorded output, which the hooks understand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from jpsi.plugin import (
    Command,
    CommandResult,
    Dependency,
    DependencyKind,
    JobState,
    Observation,
    Reason,
    ShellLine,
    Site,
    SubmitContext,
    SubmitException,
)
from jpsi_pbs import PbsConfig, fake
from jpsi_pbs.hooks import Hooks
from jpsi_testing import FakeTransport, Recording
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Invocation, Outcome, answer, on_path
from pbs_support import CONTEXT, PBS, SITE, TORQUE, recordings, spec, spec_of_kinds, torque_recordings

FAKES = {"pbs": fake.pbs, "torque": fake.torque}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Iterator[FakeScheduler]:
    outcomes = {"exit137": Outcome(60, 137), "killed": Outcome(60, -9), "fails": Outcome(60, 1)}
    with FakeScheduler(clock, slots=1, outcome=Outcome(seconds=60), outcomes=outcomes) as scheduler:
        yield scheduler


@pytest.fixture(params=[PBS, TORQUE], ids=["pbs", "torque"])
def hooks(request: pytest.FixtureRequest) -> Hooks:
    found: Hooks = request.param
    return found


@pytest.fixture
def transport(scheduler: FakeScheduler, hooks: Hooks) -> FakeTransport:
    return FakeTransport(scheduler, FAKES[hooks.name])


def _submit(
    transport: FakeTransport, hooks: Hooks, name: str = "fine", context: SubmitContext = CONTEXT
) -> str:
    script = attrs.evolve(hooks.render_script(spec(name=name), context), run=ShellLine("true"))
    result = transport.run(hooks.submit(script))
    assert result.returncode == 0, result
    return hooks.parse_submit(result)


def _observation(transport: FakeTransport, hooks: Hooks, native_id: str) -> Observation | None:
    """Return the Observation of a job from the queue, or else from the history."""
    found = hooks.parse_status(transport.run(hooks.query([native_id], SITE)), [native_id])
    if hooks is PBS and not any(it.exists for it in found.values()):
        command = PBS.query_finished([native_id], SITE)
        assert isinstance(command, Command)
        found = PBS.parse_finished(transport.run(command), [native_id])
    return found.get(native_id)


def _found_ids(transport: FakeTransport, hooks: Hooks) -> CommandResult:
    """Return the result of `find`."""
    command = hooks.find()
    if command.argv[0] == "qstat":
        return transport.run(command)
    with on_path(FAKES[hooks.name], transport.scheduler):
        done = subprocess.run(
            command.argv,
            capture_output=True,
            check=False,
            env={**os.environ, **command.environment},
            text=True,
        )
    return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


def test_a_job_from_its_submission_to_its_end(
    transport: FakeTransport, hooks: Hooks, clock: FakeClock
) -> None:
    native_id = _submit(transport, hooks)

    running = _observation(transport, hooks, native_id)
    clock.advance(60)
    ended = _observation(transport, hooks, native_id)

    assert running is not None
    assert ended is not None
    assert (running.state, running.nodes, running.restarts) == (JobState.ACTIVE, ("node01",), 0)
    assert (ended.state, ended.exit_code, ended.ran) == (JobState.COMPLETED, 0, True)
    assert ended.time is not None
    assert ended.time.timestamp() == clock()


@pytest.mark.parametrize("name", ["exit137", "killed"])
def test_exit_codes(transport: FakeTransport, hooks: Hooks, clock: FakeClock, name: str) -> None:
    native_id = _submit(transport, hooks, name)
    clock.advance(60)

    seen = _observation(transport, hooks, native_id)

    assert seen is not None
    assert (seen.state, seen.exit_code) == (JobState.FAILED, 137)


@pytest.mark.parametrize(("added", "code"), [("host=node01", 0), ("host_type=fast", 187)])
def test_chunks_have_the_added_resources(scheduler: FakeScheduler, added: str, code: int) -> None:
    requested = spec({"node_count": 2}, custom_attributes={"pbs.chunk": added})

    result = FakeTransport(scheduler, fake.pbs).run(PBS.submit(PBS.render_script(requested, CONTEXT)))

    assert (result.returncode, "Unknown resource: host_type" in result.stderr) == (code, code != 0)


def test_a_finished_job_is_in_the_history_alone(scheduler: FakeScheduler, clock: FakeClock) -> None:
    transport = FakeTransport(scheduler, fake.pbs)
    native_id = _submit(transport, PBS)
    clock.advance(60)

    result = transport.run(PBS.query([native_id], SITE))
    scheduler.accounting = False
    forgotten = transport.run(PBS.query([native_id], SITE))

    for output, code in ((result, 35), (forgotten, 153)):
        assert output.returncode == code
        assert not PBS.parse_status(output, [native_id])[native_id].exists
    with pytest.raises(SubmitException, match="not configured"):
        _observation(transport, PBS, native_id)


def test_a_second_job_waits_for_the_first(transport: FakeTransport, hooks: Hooks) -> None:
    _submit(transport, hooks)
    native_id = _submit(transport, hooks)

    seen = _observation(transport, hooks, native_id)

    assert seen is not None
    assert seen.state is JobState.QUEUED
    assert (seen.message or "").startswith("Not Running: ")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (FakeState.TIMEOUT, Reason.TIMEOUT),
        (FakeState.NODE_FAIL, Reason.NODE_FAIL),
        (FakeState.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY),
    ],
    ids=str,
)
def test_jobs_that_the_batch_system_ended(
    transport: FakeTransport, hooks: Hooks, scheduler: FakeScheduler, state: FakeState, reason: Reason
) -> None:
    native_id = _submit(transport, hooks)
    scheduler.end_as(native_id, state)

    seen = _observation(transport, hooks, native_id)

    assert seen is not None
    assert (seen.state, seen.reason, seen.exit_code) == (JobState.FAILED, reason, None)


def test_cancelling(transport: FakeTransport, hooks: Hooks) -> None:
    native_id, waiting = _submit(transport, hooks), _submit(transport, hooks)
    ids = [waiting, native_id, "99"]  # otherwise the end of the first would let the other start

    result = transport.run(hooks.cancel(ids))
    again = transport.run(hooks.cancel(ids))

    assert hooks.parse_cancel(result, ids) == hooks.parse_cancel(again, ids) == {}
    for name, code in ((native_id, 143), (waiting, None)):
        seen = _observation(transport, hooks, name)
        assert seen is not None
        assert (seen.state, seen.reason, seen.exit_code) == (JobState.CANCELED, Reason.CANCELLED, code)


def test_a_held_job_is_reported_as_held_until_its_release(transport: FakeTransport, hooks: Hooks) -> None:
    _submit(transport, hooks)
    native_id = _submit(transport, hooks)

    held = transport.run(hooks.hold([native_id]))
    seen = _observation(transport, hooks, native_id)
    released = transport.run(hooks.release([native_id]))

    assert hooks.parse_hold(held, [native_id]) == hooks.parse_release(released, [native_id]) == {}
    assert seen is not None
    assert (seen.state, seen.message) == (JobState.QUEUED, "the job is held")
    assert "99" in hooks.parse_hold(transport.run(hooks.hold(["99"])), ["99"])


@pytest.mark.parametrize(
    ("kind", "name", "state"),
    [
        (DependencyKind.OK, "fine", JobState.ACTIVE),
        (DependencyKind.OK, "fails", JobState.CANCELED),
        (DependencyKind.NOTOK, "fine", JobState.CANCELED),
        (DependencyKind.ANY, "fails", JobState.ACTIVE),
    ],
    ids=str,
)
def test_dependencies(
    transport: FakeTransport,
    hooks: Hooks,
    clock: FakeClock,
    kind: DependencyKind,
    name: str,
    state: JobState,
) -> None:
    first = _submit(transport, hooks, name)
    second = _submit(transport, hooks, "fine", attrs.evolve(CONTEXT, after=(Dependency(first, kind),)))

    waiting = _observation(transport, hooks, second)
    clock.advance(60)
    after = _observation(transport, hooks, second)

    assert waiting is not None
    assert after is not None
    assert (waiting.state, waiting.message) == (
        JobState.QUEUED,
        "the job waits for a job that it depends on",
    )
    assert after.state is state
    assert after.reason is (Reason.DEPENDENCY if state is JobState.CANCELED else None)


def test_a_job_is_found_by_its_tag(transport: FakeTransport, hooks: Hooks) -> None:
    native_id = _submit(transport, hooks)

    found = hooks.parse_find(_found_ids(transport, hooks), [CONTEXT.tag, "jpsi-other-1"])

    assert found == {CONTEXT.tag: native_id}


def test_a_requeued_job_counts(transport: FakeTransport, hooks: Hooks, scheduler: FakeScheduler) -> None:
    native_id = _submit(transport, hooks)
    scheduler.requeue(native_id, delay=120)

    seen = _observation(transport, hooks, native_id)

    assert seen is not None
    assert (seen.state, seen.restarts, seen.reason) == (JobState.QUEUED, 1, Reason.REQUEUED)


def test_the_run_count_of_a_foreign_job_starts_at_one(
    transport: FakeTransport, hooks: Hooks, scheduler: FakeScheduler
) -> None:
    """An earlier job with the same native id does not count."""
    native_id = _submit(transport, hooks)
    scheduler.requeue(native_id)

    scheduler.reuse_native_id(native_id)

    seen = _observation(transport, hooks, native_id)
    assert seen is not None
    assert (seen.state, seen.restarts) == (JobState.ACTIVE, 0)


def test_the_limit_of_running_elements_is_kept(clock: FakeClock, hooks: Hooks) -> None:
    """Torque holds the other elements and reports no kind of hold."""
    limited = attrs.evolve(CONTEXT, elements=3, at_a_time=2)
    with FakeScheduler(clock, slots=5, outcome=Outcome(seconds=60)) as scheduler:
        transport = FakeTransport(scheduler, FAKES[hooks.name])
        ids = hooks.element_ids(_submit(transport, hooks, context=limited), [1, 2, 3])

        seen = [_observation(transport, hooks, native_id) for native_id in ids]

        assert [it.native_state for it in seen if it] == ["R", "R", "Q" if hooks is PBS else "H"]
        clock.advance(60)
        assert scheduler.job(ids[2]).state is FakeState.RUNNING


def test_the_probe_reports_the_properties_of_the_site(scheduler: FakeScheduler) -> None:
    transport = FakeTransport(scheduler, fake.pbs)
    kept = PBS.parse_probe(transport.run(PBS.probe()))
    scheduler.accounting = False

    assert kept == {"array_limits": True, "history": True, "server": "node01", "largest_array": 10000}
    assert PBS.parse_probe(transport.run(PBS.probe())) == {**kept, "history": False}
    assert not isinstance(
        PBS.query_finished(["1"], Site(config=PbsConfig(), offers={"history": False})), Command
    )


def test_the_environment_of_the_caller_sets_no_option(
    transport: FakeTransport, hooks: Hooks, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PBS_DPREFIX": "#OTHER",
        "PBS_JOBID": "1.other",
        "PBS_ARRAY_INDEX": "4",
        "JPSI_TAG": "jpsi-surrounding-1",
        "PBS_SERVER": "node01",
        "FROM_OUTSIDE": "x",
    }.items():
        monkeypatch.setenv(name, value)

    job = scheduler.job(_submit(transport, hooks, "mine"))

    assert (job.name, job.tag, job.time_limit) == ("mine", CONTEXT.tag, 600)
    assert job.environment["PBS_JOBID"] == job.native_id
    assert {"PBS_SERVER": "node01", "FROM_OUTSIDE": "x"}.items() <= job.environment.items()
    assert "PBS_ARRAY_INDEX" not in job.environment


@pytest.mark.parametrize("value", ["a\nb", "\\", '"', "]]>", "&lt;", "\n</Job>", "nan", "007", "\x01"])
def test_a_value_in_the_environment_spoils_no_listing(
    transport: FakeTransport, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("HOSTILE", value)

    native_id = _submit(transport, hooks)

    seen = _observation(transport, hooks, native_id)
    assert seen is not None
    assert seen.state is JobState.ACTIVE
    assert hooks.parse_find(_found_ids(transport, hooks), [CONTEXT.tag]) == {CONTEXT.tag: native_id}


def test_directives_after_the_first_command_are_ignored(
    transport: FakeTransport, hooks: Hooks, scheduler: FakeScheduler
) -> None:
    script = hooks.render_script(spec(), CONTEXT)
    text = attrs.evolve(script, run=ShellLine("exec /bin/sh run\n#PBS -N theirs"))

    result = transport.run(hooks.submit(text))

    assert scheduler.job(hooks.parse_submit(result)).name == "jpsi"


# The output of the fakes that jpsi depends on, compared with that of the real batch systems.
_SCRIPT = "#!/bin/bash\necho hello\n"
_SAME = {
    "submit_bad_queue": (["qsub", "-q", "nosuchqueue", "ok.sh"],),
    "submit_bad_resource": (["qsub", "-l", "foo=1", "ok.sh"], ["qsub", "-l", "walltime=abc", "ok.sh"]),
    "submit_bad_select": (
        ["qsub", "-l", "select=x", "ok.sh"],
        ["qsub", "-l", "select=1:foo=1", "ok.sh"],
        ["qsub", "-l", "place=excl", "ok.sh"],
    ),
    "unknown_job": (
        ["qstat", "-f", "-F", "json", "-x", "99999.node01"],
        ["qstat", "-f", "-F", "json", "-x", "99999"],
        ["qstat", "-f", "-F", "json", "-x", "99999.node01.example"],
        ["qstat", "-f", "-F", "json", "-x", "abc"],
        ["qdel", "99999"],
        ["qdel", "1.2.3"],
        ["qhold", "99999.node01"],
        ["qrls", "99999.node01"],
    ),
    "express": (
        ["qstat", "-f", "-F", "json", "-E", "9999999"],
        ["qstat", "-f", "-F", "json", "-E", "9999999", "9999998"],
        ["qstat", "-f", "-F", "json", "-x", "-E", "9999999"],
    ),
    "no_jobs": (["qstat", "-f", "-F", "json"],),
}
_SAME_IN_TORQUE = {
    "submit_errors": (
        ["qsub", "-q", "nosuchqueue", "ok.sh"],
        ["qsub", "-l", "foo=1", "ok.sh"],
        ["qsub", "-l", "walltime=abc", "ok.sh"],
        ["qsub", "-W", "depend=afterok:99999", "ok.sh"],
    ),
    "unknown_job": (
        ["qstat", "-f", "-x", "99999.node01"],
        ["qstat", "-f", "-x", "abc"],
        ["qdel", "99999.node01"],
        ["qdel", "abc"],
        ["qhold", "99999.node01"],
    ),
}


def _recorded() -> Iterator[tuple[str, Recording]]:
    for scenario, commands in _SAME.items():
        for argv in commands:
            steps = recordings(scenario)
            yield "pbs", next(step for step in steps if list(step.argv) == argv)
    for scenario, commands in _SAME_IN_TORQUE.items():
        for argv in commands:
            steps = torque_recordings(scenario)
            yield "torque", next(step for step in steps if list(step.argv) == argv)


@pytest.mark.parametrize(("system", "recording"), list(_recorded()), ids=str)
def test_the_fake_prints_the_recorded_output(
    scheduler: FakeScheduler, system: str, recording: Recording
) -> None:
    argv = [word for word in recording.argv if word != "ok.sh"]

    found = answer(scheduler, FAKES[system], Invocation(argv=argv, stdin=_SCRIPT))

    assert found.returncode == recording.result.returncode
    assert found.stderr == recording.result.stderr
    assert _timeless(found.stdout) == _timeless(recording.result.stdout)


def _timeless(text: str) -> list[str]:
    return [line for line in text.splitlines() if "timestamp" not in line]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-l", "select=1:ncpus=1:ncpus"], "1.node01"),
        (["-Z"], "invalid option"),
        (["-N", "a b"], "illegal -N value"),
        (["-N", "a" * 231], "Job name is too long"),
        (["-W", "depend=afterok:xyz"], "illegal -W value"),
    ],
)
def test_qsub_reads_its_options(scheduler: FakeScheduler, words: list[str], message: str) -> None:
    found = answer(scheduler, fake.pbs, Invocation(argv=["qsub", *words], stdin=_SCRIPT))

    assert message in found.stdout + found.stderr


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("#PBS -N two words", "directive error: -N two words"),
        ("#PBS -N 'unbalanced", "unmatched"),
        ("#PBS -Z", "invalid option -- 'Z'\nqsub: directive error: -Z"),
        ("#PBS nonsense", "directive error: nonsense"),
    ],
)
def test_qsub_reads_directives(scheduler: FakeScheduler, head: str, message: str) -> None:
    found = answer(scheduler, fake.pbs, Invocation(argv=["qsub"], stdin=f"{head}\necho\n"))

    assert found.returncode == 1
    assert message in found.stderr


@pytest.mark.parametrize("name", sorted(FAKES))
@pytest.mark.parametrize("command", ["qdel", "qhold", "qrls", "qstat", "qsub"])
def test_the_fake_prints_the_recorded_errors_of_an_unreachable_server(name: str, command: str) -> None:
    read = recordings if name == "pbs" else torque_recordings
    recorded = [step for step in read("submit_server_down") if step.argv[0] == command]
    found = FAKES[name].unreachable(command)

    refusals: list[CommandResult] = [step.result for step in recorded if step.result.returncode != 0]
    if refusals:
        assert found.returncode == refusals[0].returncode
        assert found.stderr == refusals[0].stderr
    else:
        assert "cannot connect to server" in found.stderr


@pytest.mark.parametrize("name", ["pbs", "torque"])
def test_a_script_can_be_a_file(scheduler: FakeScheduler, tmp_path: Path, name: str) -> None:
    (tmp_path / "j.sh").write_text("#PBS -q debug\ntrue\n")

    for file in ("j.sh", "nosuch"):
        call = Invocation(argv=["qsub", file], directory=str(tmp_path))
        result = answer(scheduler, FAKES[name], call)

    assert (result.returncode, result.stderr) == (1, "qsub: script file:: No such file or directory\n")
    (job,) = scheduler.jobs
    assert (job.name, job.queue, job.stdout) == ("j.sh", "debug", f"{tmp_path}/j.sh.o1")


@pytest.mark.parametrize("hooks", [PBS, TORQUE], ids=["pbs", "torque"])
def test_slots_of_several_kinds_have_their_nodes(
    scheduler: FakeScheduler, transport: FakeTransport, hooks: Hooks
) -> None:
    scheduler.slots = 9
    requested = spec_of_kinds({"process_count": 2}, {"node_count": 2, "processes_per_node": 3})
    script = attrs.evolve(hooks.render_script(requested, CONTEXT), run=ShellLine("true"))

    native_id = hooks.parse_submit(transport.run(hooks.submit(script)))

    seen = _observation(transport, hooks, native_id)
    assert seen is not None
    assert (seen.state, seen.nodes) == (JobState.ACTIVE, ("node01", "node02", "node03"))
