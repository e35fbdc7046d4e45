"""The fakes: they print recorded output, which the hooks understand."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from jpsi.plugin import Command, CommandResult, JobSpec, JobState, Observation, Reason, ShellLine, Site
from jpsi_lsf import hooks
from jpsi_lsf.fake import lsf, volclava
from jpsi_lsf.queue.json_listing import FIELDS
from jpsi_testing import FakeTransport, Recording, executor_hooks
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Invocation, Outcome, answer
from lsf_support import CONTEXT, MODERN, OLD, SITE, recordings

HOOKS = executor_hooks(hooks)
FLAVOURS = {"lsf": (lsf, MODERN), "volclava": (volclava, OLD), "before the probe": (lsf, SITE)}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Iterator[FakeScheduler]:
    outcomes = {
        "exit7": Outcome(seconds=60, exit_code=7),
        "killed": Outcome(seconds=60, exit_code=-9),
    }
    with FakeScheduler(clock, slots=1, outcome=Outcome(seconds=60), outcomes=outcomes) as scheduler:
        yield scheduler


class _Site:
    """A fake and the probed properties of its site."""

    def __init__(self, scheduler: FakeScheduler, fake_system: ModuleType, site: Site) -> None:
        self.transport, self.site = FakeTransport(scheduler, fake_system), site

    def submit(self, name: str = "fine") -> str:
        spec = JobSpec("/bin/true", name=name)
        text = HOOKS.render_script(spec=spec, context=CONTEXT)
        text = type(text)(text.directives, ShellLine("exec /bin/sh run"))
        result = self.run(HOOKS.submit(script=text, spec=spec, context=CONTEXT))
        return HOOKS.parse_submit(result=result, context=CONTEXT)

    def run(self, command: object) -> CommandResult:
        assert isinstance(command, Command)
        return self.transport.run(command)

    def observation(self, native_id: str) -> Observation | None:
        result = self.run(HOOKS.query(native_ids=[native_id], site=self.site))
        return HOOKS.parse_status(result=result, native_ids=[native_id], site=self.site).get(native_id)

    def ended(self, native_id: str) -> Observation:
        """Return the Observation of an ended job, from bjobs or else from bhist."""
        observation = self.observation(native_id)
        if observation is not None:
            return observation
        result = self.run(HOOKS.query_finished(native_ids=[native_id], site=self.site))
        return HOOKS.parse_finished(result=result, native_ids=[native_id], site=self.site)[native_id]


@pytest.fixture(params=FLAVOURS)
def fake_site(scheduler: FakeScheduler, request: pytest.FixtureRequest) -> _Site:
    return _Site(scheduler, *FLAVOURS[request.param])


def test_a_job_from_its_submission_to_its_end(fake_site: _Site, clock: FakeClock) -> None:
    first, second = fake_site.submit(), fake_site.submit()

    running, pending = fake_site.observation(first), fake_site.observation(second)
    clock.advance(60)
    ended = fake_site.ended(first)

    assert running is not None
    assert pending is not None
    assert (running.state, running.nodes) == (JobState.ACTIVE, ("node01",))
    assert (pending.state, pending.message) == (JobState.QUEUED, "Job slot limit reached")
    assert ended.state is JobState.COMPLETED


@pytest.mark.parametrize(("name", "code"), [("exit7", 7), ("killed", 137)])
def test_exit_codes(fake_site: _Site, clock: FakeClock, name: str, code: int) -> None:
    native_id = fake_site.submit(name)
    clock.advance(60)

    assert (fake_site.ended(native_id).state, fake_site.ended(native_id).exit_code) == (JobState.FAILED, code)


@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        (FakeState.TIMEOUT, JobState.FAILED, Reason.TIMEOUT),
        (FakeState.CANCELLED, JobState.CANCELED, Reason.CANCELLED),
    ],
    ids=str,
)
def test_ends_caused_by_users_and_lsf(
    fake_site: _Site,
    scheduler: FakeScheduler,
    clock: FakeClock,
    end: FakeState,
    state: JobState,
    reason: Reason,
) -> None:
    native_id = fake_site.submit()
    scheduler.end_as(native_id, end)
    clock.advance(10)

    assert (fake_site.ended(native_id).state, fake_site.ended(native_id).reason) == (state, reason)


def test_a_job_is_held_and_released(fake_site: _Site) -> None:
    fake_site.submit()
    native_id = fake_site.submit()

    held = fake_site.run(HOOKS.hold(native_ids=[native_id], site=fake_site.site))
    observation = fake_site.observation(native_id)
    released = fake_site.run(HOOKS.release(native_ids=[native_id], site=fake_site.site))

    assert HOOKS.parse_hold(result=held, native_ids=[native_id], site=fake_site.site) == {}
    assert HOOKS.parse_release(result=released, native_ids=[native_id], site=fake_site.site) == {}
    assert observation is not None
    assert observation.message is not None
    assert (observation.native_state, observation.message.startswith("the job is held")) == ("PSUSP", True)
    unknown = fake_site.run(HOOKS.hold(native_ids=["99"], site=fake_site.site))
    assert HOOKS.parse_hold(result=unknown, native_ids=["99"], site=fake_site.site) == {
        "99": "No matching job found"
    }


def test_a_job_is_found_by_its_tag(fake_site: _Site) -> None:
    native_id = fake_site.submit()
    tags = [CONTEXT.tag, "jpsi-other-1"]

    result = fake_site.run(HOOKS.find(tags=tags, site=fake_site.site))

    assert HOOKS.parse_find(result=result, tags=tags, site=fake_site.site) == {CONTEXT.tag: native_id}


def test_a_requeued_job_is_queued(fake_site: _Site, scheduler: FakeScheduler, clock: FakeClock) -> None:
    native_id = fake_site.submit()
    scheduler.requeue(native_id, delay=120)
    clock.advance(10)

    observation = fake_site.observation(native_id)

    assert observation is not None
    assert observation.state is JobState.QUEUED


@pytest.mark.parametrize("has_job", [False, True])
@pytest.mark.parametrize(("fake_system", "json"), [(lsf, True), (volclava, False)], ids=["lsf", "volclava"])
def test_the_probe_reports_the_properties_of_the_site(
    scheduler: FakeScheduler, fake_system: ModuleType, json: bool, has_job: bool
) -> None:
    """Runs the commands of the probe's script one after the other."""
    if has_job:
        _Site(scheduler, fake_system, SITE).submit()
    calls = (["bjobs", "-V"], ["bjobs", "-o", FIELDS, "-json"], ["bparams", "-l"], ["bqueues", "-l"])
    results = [answer(scheduler, fake_system, Invocation(argv=argv)) for argv in calls]
    result = CommandResult(
        returncode=results[-1].returncode,
        stdout="".join(it.stdout for it in results),
        stderr="".join(it.stderr for it in results),
    )

    assert HOOKS.parse_probe(result=result, site=SITE) == {
        "json": json,
        "requeue_exit_codes": [88, 89],
        "max_job_array_size": 1000,
    }


def test_the_environment_of_the_caller_sets_no_option(
    fake_site: _Site, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BSUB_QUIET", "BSUB_CHK_RESREQ", "LSB_JOBNAME", "LSB_BJOBS_FORMAT"):
        monkeypatch.setenv(name, "theirs")

    native_id = fake_site.submit("mine")

    assert scheduler.job(native_id).environment["LSB_JOBNAME"] == "mine"
    assert fake_site.observation(native_id) is not None


# The output of the fake volclava that jpsi depends on, compared with that of the real one.
_SCENARIOS = {
    "bsub-errors": (
        ["bsub", "-q", "nosuch", "-o", "/dev/null", "echo hi"],
        ["bsub", "-W", "abc", "-o", "/dev/null", "echo hi"],
        ["bsub", "-n", "abc", "-o", "/dev/null", "echo hi"],
        ["bsub", "-n", "1000", "-o", "/dev/null", "echo hi"],
        ["bsub", "-R", "select[mem>", "-o", "/dev/null", "echo hi"],
        ["bsub", "-M", "1G", "-o", "/dev/null", "echo hi"],
        ["bsub", "-x", "-o", "/dev/null", "echo hi"],
        ["bsub", "-w", "done(999999)", "-o", "/dev/null", "echo hi"],
        ["bsub", "-w", "nonsense(", "-o", "/dev/null", "echo hi"],
    ),
    "bjobs-forms": (
        ["bjobs", "-l", "999999"],
        ["bjobs", "-o", "jobid stat", "-json", "999999"],
        ["bjobs", "abc"],
        ["bhist", "-l", "999999"],
    ),
    "bkill": (["bkill", "999999"], ["bkill", "abc"]),
    "clean-period": (["bjobs", "-a"],),
}


def _recorded() -> Iterator[Recording]:
    for scenario, commands in _SCENARIOS.items():
        for argv in commands:
            yield next(step for step in recordings(scenario) if list(step.argv) == argv)


@pytest.mark.parametrize("recording", list(_recorded()), ids=str)
def test_the_fake_prints_the_recorded_output(scheduler: FakeScheduler, recording: Recording) -> None:
    # Options that the recording has on the command line are here in the script, or follow -l.
    argv = [word for word in recording.argv if word != "echo hi"]
    if argv[0] == "bjobs" and "-json" not in argv and "-l" not in argv:
        argv.append("-l")
    if argv[0] == "bhist":
        argv[1:1] = ["-n", "0"]

    printed = answer(scheduler, volclava, Invocation(argv=argv, stdin="#!/bin/sh\necho hi\n"))

    assert printed.returncode == recording.result.returncode
    assert "".join(printed.stdout.split()) == "".join(recording.result.stdout.split())
    assert printed.stderr.strip() == recording.result.stderr.strip()


@pytest.mark.parametrize("command", sorted(lsf.commands))
def test_an_lsf_that_is_down_is_understood(command: str) -> None:
    result = lsf.unreachable(command)

    assert result.returncode != 0
    assert "refused" in result.stderr or "is down" in result.stderr


_KINDS = "1*{span[hosts=1]} + 4*{span[ptile=2]}"


@pytest.mark.parametrize("slots", [["-n", "5"], []], ids=["counted", "by the terms"])
def test_a_compound_requirement_has_nodes_of_its_own_for_each_term(
    scheduler: FakeScheduler, slots: list[str]
) -> None:
    invocation = Invocation(argv=["bsub", *slots, "-R", _KINDS], stdin="true\n")

    assert answer(scheduler, lsf, invocation).returncode == 0

    (job,) = scheduler.jobs
    assert job.files["LSB_DJOB_HOSTFILE"].split() == ["node01", "node02", "node02", "node03", "node03"]


@pytest.mark.parametrize(
    ("fake_system", "slots", "why"),
    [(lsf, "4", "slots requirements conflict"), (volclava, "5", "Bad resource requirement syntax")],
    ids=["lsf", "volclava"],
)
def test_a_compound_requirement_that_is_refused(
    scheduler: FakeScheduler, fake_system: ModuleType, slots: str, why: str
) -> None:
    invocation = Invocation(argv=["bsub", "-n", slots, "-R", _KINDS], stdin="true\n")

    result = answer(scheduler, fake_system, invocation)

    assert (result.returncode, why in result.stderr) == (255, True)


def test_the_table_has_the_recorded_columns(scheduler: FakeScheduler) -> None:
    """It is printed unless options choose columns."""
    fake = _Site(scheduler, lsf, MODERN)
    fake.submit()
    fake.submit("exit7")
    for job in scheduler.jobs:
        job.queue = "normal"

    heading, *rows = fake.run(Command(["bjobs"])).stdout.splitlines()

    assert heading == "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME"
    assert [row.split()[:4:2] for row in rows] == [["1", "RUN"], ["2", "PEND"]]
    assert [row[heading.index("EXEC_HOST") :][:7].strip() for row in rows] == ["node01", ""]
    assert all(row[heading.index("SUBMIT") :] == "Jan  1 00:00" for row in rows)


def test_a_command_can_follow_the_options(scheduler: FakeScheduler) -> None:
    _Site(scheduler, lsf, MODERN).run(Command(["bsub", "-q", "short", "echo", "-a", "b"]))

    (job,) = scheduler.jobs
    assert (job.name, job.script, job.queue) == ("echo -a b", "echo -a b\n", "short")
