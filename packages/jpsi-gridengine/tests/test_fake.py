"""The fake Grid Engine, which prints the recorded messages and repeats Grid Engine's parsing errors."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gridengine_support import CONTEXT, SITE, recordings
from jpsi.plugin import Command, CommandResult, JobSpec, JobState, Observation, Reason, ShellLine
from jpsi_gridengine import fake, hooks
from jpsi_testing import Recording, command_result, executor_hooks
from jpsi_testing.fake import (
    FakeClock,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    Outcome,
    answer,
    on_path,
)

HOOKS = executor_hooks(hooks)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Iterator[FakeScheduler]:
    outcomes = {"killed": Outcome(seconds=60, exit_code=-9), "seven": Outcome(seconds=60, exit_code=7)}
    with FakeScheduler(clock, slots=1, outcome=Outcome(seconds=60), outcomes=outcomes) as scheduler:
        yield scheduler


def _call(scheduler: FakeScheduler, command: Command) -> CommandResult:
    environment = {"PATH": "/usr/bin:/bin", **command.environment}
    return answer(
        scheduler, fake, Invocation(argv=command.argv, stdin=command.stdin or "", environment=environment)
    )


def _submit(scheduler: FakeScheduler, name: str = "fine") -> str:
    spec = JobSpec("/bin/true", name=name)
    script = HOOKS.render_script(spec=spec, context=CONTEXT)
    result = _call(scheduler, HOOKS.submit(script=script, spec=spec, context=CONTEXT))
    return HOOKS.parse_submit(result=result, context=CONTEXT)


def _observation(scheduler: FakeScheduler, native_id: str) -> Observation | None:
    result = _call(scheduler, HOOKS.query(native_ids=None, site=SITE))
    return HOOKS.parse_status(result=result, native_ids=[native_id], site=SITE).get(native_id)


def _account(scheduler: FakeScheduler, native_id: str) -> Observation | None:
    command = HOOKS.query_finished(native_ids=[native_id], site=SITE)
    assert isinstance(command, Command)
    with on_path(fake, scheduler):
        environment = {**os.environ, **command.environment}
        done = subprocess.run(command.argv, env=environment, text=True, capture_output=True, check=True)
    result = command_result(done.stdout, done.stderr)
    return HOOKS.parse_finished(result=result, native_ids=[native_id], site=SITE).get(native_id)


def test_a_job_is_queued_runs_and_is_accounted_for(scheduler: FakeScheduler, clock: FakeClock) -> None:
    first, second = _submit(scheduler), _submit(scheduler, "seven")

    assert [getattr(_observation(scheduler, it), "native_state", None) for it in (first, second)] == [
        "r",
        "qw",
    ]
    clock.advance(60)
    assert _observation(scheduler, first) is None
    clock.advance(60)

    ends = [_account(scheduler, native_id) for native_id in (first, second)]
    assert [(it.state, it.exit_code) for it in ends if it] == [
        (JobState.COMPLETED, 0),
        (JobState.FAILED, 7),
    ]
    assert ends[0] is not None
    assert ends[0].time is not None
    assert ends[0].time.timestamp() == int(scheduler.job(first).ended or 0)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (FakeState.CANCELLED, Reason.SIGNAL),
        (FakeState.TIMEOUT, Reason.TIMEOUT),
        (FakeState.NODE_FAIL, Reason.NODE_FAIL),
    ],
)
def test_jobs_that_grid_engine_ended(scheduler: FakeScheduler, state: FakeState, reason: Reason) -> None:
    native_id = _submit(scheduler)

    scheduler.end_as(native_id, state)

    end = _account(scheduler, native_id)
    assert end is not None
    assert (end.state, end.reason) == (JobState.FAILED, reason)


def test_a_job_deleted_before_its_start_has_no_account(scheduler: FakeScheduler) -> None:
    _submit(scheduler)
    native_id = _submit(scheduler)

    scheduler.cancel(native_id)

    assert _observation(scheduler, native_id) is None
    assert _account(scheduler, native_id) is None


def test_a_job_is_held_and_released(scheduler: FakeScheduler) -> None:
    _submit(scheduler)
    native_id = _submit(scheduler)

    _call(scheduler, HOOKS.hold(native_ids=[native_id], site=SITE))  # type: ignore[arg-type]  # it is offered
    assert getattr(_observation(scheduler, native_id), "native_state", None) == "hqw"
    _call(scheduler, HOOKS.release(native_ids=[native_id], site=SITE))  # type: ignore[arg-type]  # as above
    assert getattr(_observation(scheduler, native_id), "native_state", None) == "qw"


def test_a_directive_in_any_line_of_the_script_counts(scheduler: FakeScheduler) -> None:
    """Therefore the script contains no text of the user."""
    stdin = "#!/bin/sh\necho '\n#$ -N evil\n'\n"
    invocation = Invocation(argv=["qsub", "-terse"], stdin=stdin, environment={"PATH": "/bin"})

    native_id = answer(scheduler, fake, invocation).stdout.strip()

    assert scheduler.job(native_id).name == "evil"


def _refused() -> list[Recording]:
    known = {"-P", "-pe", "-nosuch", "--nosuch", "-l", "-ar", "-q", "-N"}
    steps = [*recordings("qsub-errors"), *recordings("qsub-ok")]
    return [
        it
        for it in steps
        if it.argv[0] == "qsub" and it.result.returncode in {1, 2} and known & {*it.argv[:4]}
    ]


@pytest.mark.parametrize("recording", _refused(), ids=str)
def test_the_fake_refuses_with_the_recorded_messages(scheduler: FakeScheduler, recording: Recording) -> None:
    arguments = [it for it in recording.argv[1:] if it not in {"job.sh", "true", "-b", "y"}]
    invocation = Invocation(argv=["qsub", *arguments], stdin="true\n", environment={"PATH": "/bin"})

    result = answer(scheduler, fake, invocation)

    assert (result.returncode, result.stderr) == (recording.result.returncode, recording.result.stderr)


@pytest.mark.parametrize("recording", recordings("qmaster-down"), ids=str)
def test_the_fake_prints_the_recorded_errors_of_an_unreachable_server(recording: Recording) -> None:
    command, *arguments = recording.argv
    if command not in {"qsub", "qstat", "qdel"} or "-j" in arguments or recording.result.returncode == 0:
        pytest.skip("not a command of the fake's")

    assert fake.unreachable(command) == recording.result


def test_the_fake_deletes_with_the_recorded_messages(scheduler: FakeScheduler) -> None:
    running, pending = _submit(scheduler), _submit(scheduler)
    scheduler.job(running).owner = scheduler.job(pending).owner = "tester"
    mine = {
        step.argv[1]: step.result.stdout
        for step in recordings("qstat-qacct")
        if step.argv[:1] == ("qdel",) and step.argv[1:]
    }

    foreign = answer(scheduler, fake, Invocation(argv=["qdel", running], environment={"PATH": "/bin"}))
    unknown = answer(scheduler, fake, Invocation(argv=["qdel", "999999"], environment={"PATH": "/bin"}))

    assert unknown == command_result(mine["999999"].replace("\n\n", "\n"), returncode=1)
    assert "you do not have the necessary privileges to delete the job" in mine["289"]
    assert "you do not have the necessary privileges to delete the job" in foreign.stdout


def test_the_limit_of_running_tasks_is_kept(clock: FakeClock) -> None:
    script = "#!/bin/sh\n#$ -t 1-3\n#$ -tc 2\nexit 0\n"
    with FakeScheduler(clock, slots=5, outcome=Outcome(seconds=60)) as scheduler:
        _call(scheduler, Command(["qsub"], stdin=script))

        seen = [_observation(scheduler, f"1.{task}") for task in (1, 2, 3)]

        assert [it.native_state for it in seen if it] == ["r", "r", "qw"]


def test_the_fake_lists_arrays_like_grid_engine(clock: FakeClock) -> None:
    """All commands that were recorded about two arrays, except those of another user."""
    me = FakeJob("").owner
    with FakeScheduler(clock, slots=16, outcome=Outcome(seconds=600)) as scheduler:
        numbers: dict[str, str] = {}
        for step in recordings("arrays"):
            if step.note == "an array that is being deleted":
                break  # jobs of the fake end at once
            if step.note == "as another user":
                continue
            argv = [_translated(word, numbers) for word in step.argv]
            call = Invocation(argv=argv, stdin=step.stdin or "", environment={"PATH": "/usr/bin:/bin"})
            result = answer(scheduler, fake, call)
            if step.argv[0] == "qsub":
                numbers[step.result.stdout.partition(".")[0]] = result.stdout.partition(".")[0]
            expected = _translated(step.result.stdout.replace("jpsi-ci", me), numbers)
            if step.argv[0] == "qstat":
                assert _rows(result.stdout) == _rows(expected), step
            elif "already in deletion" not in expected:
                assert (result.returncode, result.stdout) == (step.result.returncode, expected), step
            clock.advance(step.details.get("slept_after", 0))


def _translated(text: str, numbers: Mapping[str, str]) -> str:
    for recorded, number in numbers.items():
        text = re.sub(rf"\b{recorded}\b", number, text)
    return text


def _rows(listing: str) -> list[list[str]]:
    """Return the job, its state and its tasks from each line of a listing."""
    if "<?xml" in listing:
        fields = ("JB_job_number", "state", "tasks")
        rows = [dict(re.findall(r"<(\w+)>(.*)</", row)) for row in listing.split("<job_list")[1:]]
        return sorted([row[name] for name in fields] for row in rows)
    lines = [line.split() for line in listing.splitlines()[2:]]
    return sorted([line[0], line[4], line[-1]] for line in lines)


def test_the_script_and_its_interpreter_are_the_jobs(scheduler: FakeScheduler) -> None:
    native_id = _submit(scheduler)

    assert scheduler.job(native_id).script.endswith(f"{ShellLine('')}\n")
    assert scheduler.job(native_id).name == "fine"
    assert scheduler.job(native_id).tag == "fine.jpsi-abc-1"


def test_the_table_has_the_recorded_columns(scheduler: FakeScheduler) -> None:
    """The table is qstat's output without options."""
    for name in ("fine", "seven"):
        _submit(scheduler, name)
    running, pending = scheduler.jobs
    running.owner = pending.owner

    heading, rule, *rows = _call(scheduler, Command(["qstat"])).stdout.splitlines()

    assert heading.startswith("job-ID  prior   name       user         state submit/start at     queue   ")
    assert set(rule) == {"-"}
    assert [row.split()[0::4][:2] for row in rows] == [["1", "r"], ["2", "qw"]]
    assert rows[0][heading.index("queue") :].split() == ["main.q@node01", "1"]


def test_a_script_can_be_a_file(scheduler: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "j.sh").write_text("#$ -q debug.q\ntrue\n")

    for file in ("j.sh", "nosuch"):
        call = Invocation(argv=["qsub", "-V", file, "-a"], directory=str(tmp_path))
        result = answer(scheduler, fake, call)

    assert (result.returncode, result.stderr) == (1, "Unable to read script file: nosuch\n")
    (job,) = scheduler.jobs
    assert (job.name, job.queue, job.arguments) == ("j.sh", "debug.q", ("-a",))
    assert (job.stdout, job.stderr) == ("j.sh.o1", "j.sh.e1")
