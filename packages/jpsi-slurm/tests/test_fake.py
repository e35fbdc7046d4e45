"""The fake Slurm: it prints recorded output, which the hooks understand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin import (
    Command,
    CommandResult,
    JobAttributes,
    JobSpec,
    JobState,
    Observation,
    Reason,
    ShellLine,
    Site,
    SubmitContext,
)
from jpsi_slurm import fake, hooks
from jpsi_testing import FakeTransport, Recording, executor_hooks
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Invocation, Outcome, answer
from slurm_support import CONTEXT, SITE, recordings, site

HOOKS = executor_hooks(hooks)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Iterator[FakeScheduler]:
    outcomes = {
        "fine": Outcome(seconds=60),
        "exit137": Outcome(seconds=60, exit_code=137),
        "killed": Outcome(seconds=60, exit_code=-9),
    }
    with FakeScheduler(clock, slots=1, outcome=Outcome(seconds=60), outcomes=outcomes) as scheduler:
        yield scheduler


@pytest.fixture
def transport(scheduler: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTransport:
    # where jobs leave their output
    monkeypatch.chdir(tmp_path)
    return FakeTransport(scheduler, fake)


def _submit(transport: FakeTransport, name: str = "fine", context: SubmitContext = CONTEXT) -> CommandResult:
    spec = JobSpec("/bin/true", name=name)
    script = HOOKS.render_script(spec=spec, context=context)
    return transport.run(HOOKS.submit(script=script, spec=spec, context=context))


def _observation(transport: FakeTransport, native_id: str) -> Observation | None:
    command = HOOKS.query(native_ids=[native_id], site=SITE)
    return HOOKS.parse_status(result=transport.run(command), native_ids=[native_id], site=SITE).get(native_id)


def _accounting(transport: FakeTransport, native_id: str) -> Observation | None:
    command = HOOKS.query_finished(native_ids=[native_id], site=SITE)
    assert isinstance(command, Command)
    return HOOKS.parse_finished(result=transport.run(command), native_ids=[native_id], site=SITE).get(
        native_id
    )


def test_a_job_from_its_submission_to_its_end(transport: FakeTransport, clock: FakeClock) -> None:
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)

    running = _observation(transport, native_id)
    clock.advance(60)
    ended = _observation(transport, native_id)

    assert running is not None
    assert ended is not None
    assert (running.state, running.nodes) == (JobState.ACTIVE, ("node01",))
    assert (ended.state, ended.exit_code) == (JobState.COMPLETED, 0)
    assert ended.time is not None
    assert ended.time.timestamp() == clock()


@pytest.mark.parametrize(
    ("name", "code", "reason", "accounted"),
    [("exit137", 137, None, None), ("killed", 137, Reason.SIGNAL, 137)],
)
def test_exit_codes_in_the_queue_and_in_the_accounting(
    transport: FakeTransport,
    clock: FakeClock,
    name: str,
    code: int,
    reason: Reason | None,
    accounted: int | None,
) -> None:
    native_id = HOOKS.parse_submit(result=_submit(transport, name), context=CONTEXT)
    clock.advance(60)

    queued, kept = _observation(transport, native_id), _accounting(transport, native_id)

    assert queued is not None
    assert kept is not None
    assert (queued.state, queued.exit_code, queued.reason) == (JobState.FAILED, code, reason)
    assert (kept.state, kept.exit_code) == (JobState.FAILED, accounted)


def test_a_forgotten_job_is_denied(transport: FakeTransport, clock: FakeClock) -> None:
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)
    clock.advance(60 + 301)

    seen = _observation(transport, native_id)
    assert seen is not None
    assert not seen.exists
    assert _accounting(transport, native_id) is not None


def test_a_second_job_waits_for_the_first(transport: FakeTransport) -> None:
    _submit(transport)
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)

    seen = _observation(transport, native_id)

    assert seen is not None
    assert (seen.state, seen.message) == (JobState.QUEUED, "the nodes are in use (Resources)")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (FakeState.TIMEOUT, Reason.TIMEOUT),
        (FakeState.NODE_FAIL, Reason.NODE_FAIL),
        (FakeState.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY),
    ],
    ids=str,
)
def test_jobs_that_slurm_ended(
    transport: FakeTransport, scheduler: FakeScheduler, clock: FakeClock, state: FakeState, reason: Reason
) -> None:
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)
    scheduler.end_as(native_id, state)
    clock.advance(10)

    for seen in (_observation(transport, native_id), _accounting(transport, native_id)):
        assert seen is not None
        assert (seen.state, seen.reason, seen.exit_code) == (JobState.FAILED, reason, None)


def test_a_cancelled_job_reports_who_cancelled_it(transport: FakeTransport, clock: FakeClock) -> None:
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)

    result = transport.run(HOOKS.cancel(native_ids=[native_id, "99"], site=SITE, seen={}))
    clock.advance(10)
    seen = _accounting(transport, native_id)

    assert HOOKS.parse_cancel(result=result, native_ids=[native_id, "99"], site=SITE) == {}
    assert seen is not None
    assert (seen.state, seen.reason) == (JobState.CANCELED, Reason.CANCELLED)
    assert seen.details["slurm.cancelled_by"].isdecimal()


def test_a_held_job_is_reported_as_held_until_its_release(transport: FakeTransport) -> None:
    _submit(transport)
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)

    held = transport.run(_command(HOOKS.hold(native_ids=[native_id], site=SITE)))
    seen = _observation(transport, native_id)
    released = transport.run(_command(HOOKS.release(native_ids=[native_id], site=SITE)))

    assert HOOKS.parse_hold(result=held, native_ids=[native_id], site=SITE) == {}
    assert HOOKS.parse_release(result=released, native_ids=[native_id], site=SITE) == {}
    assert seen is not None
    assert seen.message == "the job is held (JobHeldUser)"
    unknown = transport.run(_command(HOOKS.hold(native_ids=["99"], site=SITE)))
    assert HOOKS.parse_hold(result=unknown, native_ids=["99"], site=SITE) == {
        "99": "Invalid job id specified"
    }


def _command(offered: object) -> Command:
    assert isinstance(offered, Command)
    return offered


def test_a_job_is_found_by_its_tag(transport: FakeTransport) -> None:
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)
    tags = [CONTEXT.tag, "jpsi-other-1"]

    found = HOOKS.parse_find(
        result=transport.run(_command(HOOKS.find(tags=tags, site=SITE))), tags=tags, site=SITE
    )

    assert found == {CONTEXT.tag: native_id}


def test_the_restarts_of_a_job_are_counted(
    transport: FakeTransport, scheduler: FakeScheduler, clock: FakeClock
) -> None:
    native_id = HOOKS.parse_submit(result=_submit(transport), context=CONTEXT)
    scheduler.requeue(native_id, delay=120)
    clock.advance(10)

    seen = _observation(transport, native_id)

    assert seen is not None
    assert (seen.state, seen.restarts, seen.reason) == (JobState.QUEUED, 1, Reason.REQUEUED)


def test_the_id_is_printed_before_the_cluster(transport: FakeTransport) -> None:
    context = SubmitContext(site=site(cluster="ci"), job_id="job", tag="t")

    result = _submit(transport, context=context)

    assert result.stdout == "1;ci\n"
    assert HOOKS.parse_submit(result=result, context=context) == "1"


def test_the_probe_reports_the_properties_of_the_site(
    transport: FakeTransport, scheduler: FakeScheduler
) -> None:
    command = _command(HOOKS.probe(site=SITE))
    with_accounting = HOOKS.parse_probe(result=transport.run(command), site=SITE)
    scheduler.accounting = False
    without = HOOKS.parse_probe(result=transport.run(command), site=SITE)

    assert (with_accounting["accounting"], without["accounting"]) == (True, False)
    assert with_accounting["version"] == [22, 5]
    offered = HOOKS.query_finished(native_ids=["1"], site=Site(config=SITE.config, offers=without))
    assert not isinstance(offered, Command)


def test_the_environment_of_the_caller_sets_no_option(
    transport: FakeTransport, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "SBATCH_JOB_NAME": "theirs",
        "SBATCH_TIMELIMIT": "1",
        "SBATCH_PARTITION": "nosuch",
        "SLURM_JOB_NAME": "surrounding",
        "SLURM_EXPORT_ENV": "NONE",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
    }.items():
        monkeypatch.setenv(name, value)

    native_id = HOOKS.parse_submit(result=_submit(transport, "mine"), context=CONTEXT)

    job = scheduler.job(native_id)
    assert (job.name, job.queue, job.time_limit) == ("mine", "main", 600)
    assert job.environment["SLURM_CONF"] == "/etc/slurm/slurm.conf"
    assert job.environment["SLURM_JOB_NAME"] == "mine"
    assert not {"SBATCH_JOB_NAME", "SLURM_EXPORT_ENV"} & job.environment.keys()


def test_text_of_the_user_is_no_directive(transport: FakeTransport, scheduler: FakeScheduler) -> None:
    """The fake reads only the head of the script, and the user's text is in another file."""
    spec = JobSpec("/bin/echo", ["#SBATCH --job-name=theirs"], attributes=JobAttributes(queue_name="debug"))
    script = HOOKS.render_script(spec=spec, context=CONTEXT)
    text = type(script)(script.directives, ShellLine("exec /bin/sh run\n#SBATCH --job-name=theirs"))

    result = transport.run(HOOKS.submit(script=text, spec=spec, context=CONTEXT))

    assert scheduler.job(HOOKS.parse_submit(result=result, context=CONTEXT)).name == "jpsi"


# The output of the fake that jpsi depends on, compared with that of the real Slurm.
_SCENARIOS = {
    "sbatch-errors": (
        ["sbatch", "-p", "nosuch", "job.sh"],
        ["sbatch", "-A", "nosuch", "job.sh"],
        ["sbatch", "--reservation=nosuch", "job.sh"],
        ["sbatch", "--nosuch", "job.sh"],
    ),
    "squeue-jobids": (
        ["squeue", "-h", "-o", "%i|%T|%r", "-t", "all", "-j", "999999"],
        ["squeue", "-h", "-o", "%i|%T|%r", "-j", "999998,999999"],
        ["squeue", "-h", "-o", "%i|%T|%r", "-j", "abc"],
    ),
    "scancel": (
        ["scancel", "999999"],
        ["scancel", "abc"],
        ["scancel"],
        ["scontrol", "hold", "999999"],
    ),
    "plain-after-minjobage": (["sacct", "-n", "-P", "-X", "-o", "JobID,State", "-j", "7194"],),
}


def _recorded() -> Iterator[Recording]:
    for scenario, commands in _SCENARIOS.items():
        for argv in commands:
            yield next(step for step in recordings(scenario) if list(step.argv) == argv)


@pytest.mark.parametrize("recording", list(_recorded()), ids=str)
def test_the_fake_prints_the_recorded_output(
    scheduler: FakeScheduler, recording: Recording, tmp_path: Path
) -> None:
    scheduler.accounting = False
    script = "#!/bin/bash\necho hello\n"
    (tmp_path / "job.sh").write_text(script)

    call = Invocation(argv=recording.argv, stdin=script, directory=str(tmp_path))
    printed = answer(scheduler, fake, call)

    assert printed.returncode == recording.result.returncode
    assert printed.stdout == recording.result.stdout
    assert printed.stderr.splitlines()[-1:] == recording.result.stderr.splitlines()[-1:]


@pytest.mark.parametrize("command", sorted(fake.commands))
def test_a_slurm_that_is_down_is_understood(command: str) -> None:
    result = fake.unreachable(command)

    assert result.returncode != 0
    assert "Unable to contact" in result.stderr or "Connection refused" in result.stderr


def test_a_script_can_be_a_file(scheduler: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "j.sh").write_text("#!/bin/sh\n#SBATCH -o out.%j\n")

    for file in ("j.sh", "nosuch.sh"):
        call = Invocation(argv=["sbatch", "-p", "debug", file, "a", "--fast"], directory=str(tmp_path))
        result = answer(scheduler, fake, call)

    assert (result.returncode, result.stderr) == (1, "sbatch: error: Unable to open file nosuch.sh\n")
    (job,) = scheduler.jobs
    assert (job.name, job.arguments, job.stdout, job.queue) == ("j.sh", ("a", "--fast"), "out.1", "debug")


def test_a_command_can_be_an_option(scheduler: FakeScheduler) -> None:
    answer(scheduler, fake, Invocation(argv=["sbatch", "--wrap", "echo a b"]))

    (job,) = scheduler.jobs
    assert (job.name, job.script, job.stdout) == ("wrap", "#!/bin/sh\necho a b\n", "slurm-1.out")


_MALFORMED = (
    "Invalid numeric value",
    "Invalid job array specification",
    "Invalid --time specification",
    "Invalid --mem specification",
    "Invalid --signal specification",
)


@pytest.mark.parametrize(
    "recorded",
    [it for it in recordings("sbatch-errors") if any(text in it.result.stderr for text in _MALFORMED)],
    ids=lambda it: " ".join(it.argv),
)
def test_malformed_values_are_refused_as_recorded(scheduler: FakeScheduler, recorded: Recording) -> None:
    call = Invocation(argv=[*recorded.argv[:-1]], stdin="#!/bin/sh\n")

    found = answer(scheduler, fake, call)

    assert (found.returncode, found.stderr) == (recorded.result.returncode, recorded.result.stderr)


@pytest.mark.parametrize("words", [["-N", "abc"], ["-N", "0"], ["-N", "3-2"], ["-n", "1.5"]], ids=" ".join)
def test_malformed_counts_are_refused(scheduler: FakeScheduler, words: list[str]) -> None:
    refused = answer(scheduler, fake, Invocation(argv=["sbatch", *words], stdin="#!/bin/sh\n"))

    assert (refused.returncode, scheduler.jobs) == (1, [])
    assert "Invalid n" in refused.stderr or "Invalid --nodes" in refused.stderr


def test_directives_are_refused_as_options_are(scheduler: FakeScheduler) -> None:
    script = "#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n x\n"

    refused = answer(scheduler, fake, Invocation(argv=["sbatch"], stdin=script))

    assert (refused.returncode, refused.stderr) == (
        1,
        'sbatch: error: Invalid numeric value "x" for --ntasks.\n',
    )
