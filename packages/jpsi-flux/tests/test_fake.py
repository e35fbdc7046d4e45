"""The fake Flux, which prints the recorded output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flux_support import HOOKED
from jpsi.plugin import CommandResult, Site
from jpsi_flux import fake, hooks
from jpsi_flux.config import FluxConfig
from jpsi_testing import executor_hooks
from jpsi_testing.fake import (
    NO_ANSWER,
    FakeClock,
    FakeScheduler,
    FakeState,
    Invocation,
    Outcome,
    answer,
    on_path,
)


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60, exit_code=7)) as scheduler:
        yield scheduler


def call(scheduler: FakeScheduler, *words: str, stdin: str = "", **environment: str) -> CommandResult:
    invocation = Invocation(argv=["flux", *words], stdin=stdin, environment=environment)
    return answer(scheduler, fake, invocation)


def submitted(scheduler: FakeScheduler, *words: str) -> str:
    result = call(scheduler, "submit", *words, "true")
    assert result.returncode == 0, result
    return result.stdout.strip()


def listed_job(scheduler: FakeScheduler, native_id: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(call(scheduler, "jobs", "--json", native_id).stdout)
    return row


@pytest.mark.parametrize(
    ("environment", "letter"),
    [({"LANG": "C.UTF-8"}, HOOKED), ({"LC_ALL": "C"}, "f"), ({"LANG": "POSIX"}, "f")],
)
def test_ids_are_spelled_by_the_locale(
    scheduler: FakeScheduler, environment: dict[str, str], letter: str
) -> None:
    assert call(scheduler, "submit", "true", **environment).stdout.startswith(letter)


def test_a_job_has_the_keys_that_mean_something(scheduler: FakeScheduler) -> None:
    first, second = submitted(scheduler), submitted(scheduler, "--urgency=0")

    assert listed_job(scheduler, first)["status"] == "RUN"
    assert not {"result", "waitstatus", "returncode"} & listed_job(scheduler, first).keys()
    assert (listed_job(scheduler, second)["status"], listed_job(scheduler, second)["urgency"]) == ("SCHED", 0)
    scheduler.clock.advance(60)  # type: ignore[attr-defined]  # it is a FakeClock
    ended = listed_job(scheduler, first)
    assert (ended["status"], ended["returncode"], ended["waitstatus"]) == ("FAILED", 7, 1792)
    call(scheduler, "cancel", second)
    assert (listed_job(scheduler, second)["returncode"], "waitstatus" in listed_job(scheduler, second)) == (
        -128,
        False,
    )


@pytest.mark.parametrize(
    ("state", "result", "code", "kind"),
    [
        (FakeState.TIMEOUT, "TIMEOUT", 142, "timeout"),
        (FakeState.NODE_FAIL, "FAILED", 1, "exec"),
        (FakeState.CANCELLED, "CANCELED", 143, "cancel"),
        (FakeState.OUT_OF_MEMORY, "FAILED", 143, None),
    ],
)
def test_the_keys_of_an_ended_job(
    scheduler: FakeScheduler, state: FakeState, result: str, code: int, kind: str | None
) -> None:
    native_id = submitted(scheduler)

    scheduler.end_as(scheduler.jobs[0].native_id, state)

    ended = listed_job(scheduler, native_id)
    assert (ended["result"], ended["returncode"], ended["exception"].get("type")) == (result, code, kind)


def test_jobs_that_ended_long_ago_can_be_left_out(scheduler: FakeScheduler) -> None:
    clock = scheduler.clock
    assert isinstance(clock, FakeClock)
    scheduler.keep = 7 * 86400.0
    old = submitted(scheduler)
    clock.advance(2 * 86400)
    new = submitted(scheduler)

    recent, every = (
        [job["id"] for job in json.loads(call(scheduler, *hooks_argv).stdout)["jobs"]]
        for hooks_argv in (("jobs", "--json", "--since=-1d", "-c0"), ("jobs", "--json", "-a", "-c0"))
    )

    assert [listed_job(scheduler, it)["id"] for it in (new, old)] == every
    assert recent == every[:1]


def test_several_jobs_are_a_list_and_one_is_an_object(scheduler: FakeScheduler) -> None:
    first, second = submitted(scheduler), submitted(scheduler)

    assert len(json.loads(call(scheduler, "jobs", "--json", first, second).stdout)["jobs"]) == 2
    assert [it["id"] for it in json.loads(call(scheduler, "jobs", "--json", "-c1").stdout)["jobs"]] == [
        listed_job(scheduler, second)["id"]
    ]
    some = call(scheduler, "jobs", "--json", "f1234", first)
    assert (some.returncode, some.stderr) == (0, "JobID f1234 unknown\n")
    none = call(scheduler, "jobs", "--json", "f1234")
    assert (none.returncode, none.stdout, none.stderr) == (1, "", "JobID f1234 unknown\n")
    assert call(scheduler, "jobs", "--json", first, "hello").returncode == 2
    assert call(scheduler, "jobs").stdout.splitlines()[1].endswith("true SCHED")


@pytest.mark.parametrize(
    ("words", "stderr"),
    [
        (["submit", "--queue=nosuch", "true"], "[Errno 1] Invalid queue 'nosuch' specified\n"),
        (["batch", "-n1", "--queue=nosuch"], "flux-batch: ERROR: Invalid queue 'nosuch' specified\n"),
        (["submit"], "flux-submit: ERROR: job command and arguments are missing\n"),
        (["batch"], "flux-batch: ERROR: Number of slots to allocate must be specified\n"),
        (["submit", "-t", "1:00", "true"], "flux-submit: ERROR: invalid Flux standard duration\n"),
        (
            ["submit", "-N2", "-n1", "true"],
            "flux-submit: ERROR: node count must not be greater than task count\n",
        ),
        (["batch", "-n1", "-x"], "flux-batch: ERROR: exclusive can only be set with a node count\n"),
        (
            ["submit", "--dependency=afterok:f123", "true"],
            "[Errno 22] dependency: afterok: id f123: job not found\n",
        ),
        (
            ["submit", "--dependency=afterok:hello", "true"],
            '[Errno 22] dependency: afterok: "hello" is not a valid jobid\n',
        ),
        (
            ["submit", "--dependency=nosuch:1", "true"],
            '[Errno 22] dependency scheme "nosuch" not supported\n',
        ),
    ],
    ids=str,
)
def test_refused_submissions(scheduler: FakeScheduler, words: list[str], stderr: str) -> None:
    result = call(scheduler, *words, stdin="#!/bin/sh\ntrue\n")

    assert (result.returncode, result.stderr) == (1, stderr)


def test_unknown_options_are_usage_errors(scheduler: FakeScheduler) -> None:
    """Abbreviations too."""
    for words in (["submit", "--nosuch", "true"], ["batch", "-n1", "--time", "5"], ["jobs", "--nosuch"]):
        result = call(scheduler, *words, stdin="#!/bin/sh\n")
        assert (result.returncode, "unrecognized arguments" in result.stderr) == (2, True)
    assert "is not a flux command" in call(scheduler, "nosuch").stderr


def test_directives_are_read_by_batch_and_arguments_win(scheduler: FakeScheduler) -> None:
    script = "#!/bin/sh\n#flux: -n2 --job-name='a b'\n#flux: -t 5m\ntrue\n#flux: --queue=nowhere\n"

    call(scheduler, "batch", "--time-limit=90s", stdin=script)

    (job,) = scheduler.jobs
    assert (job.name, job.slots, job.time_limit) == ("a b", 2, 90)


def test_an_instance_knows_its_job_by_another_variable(scheduler: FakeScheduler) -> None:
    """It does not inherit the variable of a surrounding job."""
    call(scheduler, "batch", "-n1", stdin="#!/bin/sh\n", FLUX_JOB_ID="fAAAAAA")
    submitted(scheduler)

    batch, plain = (job.environment for job in scheduler.jobs)
    assert "FLUX_JOB_ID" not in batch
    assert batch["FLUX_ENCLOSING_ID"].startswith(HOOKED)
    assert plain["FLUX_JOB_ID"].startswith(HOOKED)
    assert batch["FLUX_URI"] != plain["FLUX_URI"]


def test_a_dependency_that_can_never_be_satisfied_fails_the_job(scheduler: FakeScheduler) -> None:
    first = submitted(scheduler)
    second = submitted(scheduler, f"--dependency=afterok:{first}")
    assert listed_job(scheduler, second)["status"] == "DEPEND"

    scheduler.clock.advance(60)  # type: ignore[attr-defined]  # it is a FakeClock

    ended = listed_job(scheduler, second)
    assert (ended["status"], ended["exception"]["type"], "t_run" in ended) == ("FAILED", "dependency", False)


def test_cancel_reports_jobs_that_it_cannot_end(scheduler: FakeScheduler) -> None:
    first, second = submitted(scheduler), submitted(scheduler)
    call(scheduler, "cancel", first)

    result = call(scheduler, "cancel", first, "f1234", second, LC_ALL="C")

    assert result.returncode == 1
    assert result.stderr == (
        f"flux-cancel: ERROR: f{first[1:]}: job is inactive\nflux-cancel: ERROR: f234: unknown job id\n"
    )
    assert listed_job(scheduler, second)["status"] == "CANCELED"
    assert call(scheduler, "cancel", "hello").returncode == 2


def test_ids_are_translated(scheduler: FakeScheduler) -> None:
    assert call(scheduler, "job", "id", "--to=dec", "f4JWpL1vw").stdout == "7290690207744\n"
    assert call(scheduler, "job", "id", "hello").returncode == 1


def test_jobs_are_held_and_released_by_the_commands_of_the_hooks() -> None:
    """By a real shell: each job has a call of its own, and a job that cannot be held stops no other."""
    site = Site(config=FluxConfig())
    with FakeScheduler(slots=0, outcome=Outcome()) as scheduler, on_path("flux", scheduler):
        native_ids = [str(it) for it in (_submit_for_real(), _submit_for_real())]
        targets = [*native_ids[:1], "17", *native_ids[1:]]

        held = _run(hooks.hold(targets, site).argv)

        assert executor_hooks(hooks).parse_hold(result=held, native_ids=targets, site=site) == {
            "17": "unknown job"
        }
        assert [job.state for job in scheduler.jobs] == [FakeState.HELD] * 2
        released = _run(hooks.release(native_ids, site).argv)
        assert executor_hooks(hooks).parse_release(result=released, native_ids=native_ids, site=site) == {}
        assert [job.state for job in scheduler.jobs] == [FakeState.PENDING] * 2


def _submit_for_real() -> str:
    return hooks.parse_submit(_run(("flux", "submit", "true")))


def _run(argv: tuple[str, ...]) -> CommandResult:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, encoding="utf-8")
    return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


def test_every_command_fails_while_the_broker_is_down() -> None:
    result = fake.unreachable("flux")

    assert (result.returncode, "Unable to connect to Flux" in result.stderr) == (1, True)


def test_a_script_can_be_a_file(scheduler: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "j.sh").write_text("#!/bin/sh\n# flux: -N1\n")

    for file in ("j.sh", "nosuch"):
        call = Invocation(argv=["flux", "batch", file, "a"], directory=str(tmp_path))
        result = answer(scheduler, fake, call)

    assert result.stderr.startswith("flux-batch: ERROR: [Errno 2] No such file or directory: ")
    (job,) = scheduler.jobs
    assert (job.arguments, job.attributes["nodes"]) == (("a",), 1)


def test_a_started_instance_lasts_until_its_end(scheduler: FakeScheduler) -> None:
    started = answer(scheduler, fake, Invocation(argv=["flux", "start", "-o,-Slocal-uri=local:///x"]))
    rank = answer(scheduler, fake, Invocation(argv=["flux", "getattr", "rank"]))
    uptime = answer(scheduler, fake, Invocation(argv=["flux", "uptime"]))

    assert started == NO_ANSWER
    assert rank.stdout == "0\n"
    assert uptime.stdout.split()[1:2] == ["run"]
