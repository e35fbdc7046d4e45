"""Jobs that failed are submitted again, with one word and without their mistakes in bookkeeping."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi_cli.submission import job_limits, resubmit
from jpsi_engine import job_store
from jpsi_engine.spool import Spool
from jpsi_testing.fake import FakeScheduler, on_path

Run = Callable[..., subprocess.CompletedProcess[bytes]]
# An element completes once its file is there.
_COMMAND = ("sh", "-c", "echo $JPSI_ARRAY_INDEX; test -e ok-$JPSI_ARRAY_INDEX")


def printed(result: subprocess.CompletedProcess[bytes]) -> str:
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout.decode().strip()


def listed(run: Run) -> list[dict[str, Any]]:
    return list(json.loads(run("ls", "--json").stdout))


@pytest.fixture
def fake() -> Iterator[FakeScheduler]:
    with FakeScheduler(slots=8) as fake, on_path("slurm", fake):
        yield fake


@pytest.fixture
def slurm(run: Run, fake: FakeScheduler, environment: dict[str, str]) -> Run:
    """Run `jpsi` with the fake Slurm on its PATH, as the default executor."""
    Path(environment["XDG_CONFIG_HOME"], "jpsi").mkdir()
    Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml").write_text("default_executor: slurm\n")
    here = {**environment, "PATH": os.environ["PATH"]}
    return lambda *arguments, **options: run(*arguments, **{"env": here, **options})


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe to which a job listens: opening it to write lets the job end."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def test_only_the_elements_that_failed_run_again_with_their_indices(slurm: Run, tmp_path: Path) -> None:
    (tmp_path / "ok-1").touch()
    array = printed(slurm("submit", "--name", "sweep", "--array", "0-2", "--", *_COMMAND))
    assert slurm("wait", array).returncode == 1
    (tmp_path / "ok-0").touch()
    (tmp_path / "ok-2").touch()

    again = printed(slurm("resubmit", "--failed", array))
    assert slurm("wait", again).returncode == 0
    jobs = [job for job in listed(slurm) if job["array_id"] == again]
    assert [(job["name"], job["array_index"]) for job in jobs] == [("sweep", 0), ("sweep", 2)]
    assert [job["native_id"].partition("_")[2] for job in jobs] == ["1", "2"]
    assert slurm("logs", again).stdout.decode().splitlines()[1::2] == ["0", "2"]
    assert slurm("wait", array).returncode == 1
    assert [it["array_id"] for it in listed(slurm)] == [array] * 3 + [again] * 2


@pytest.mark.parametrize("options", [[], ["--failed"]], ids=["all", "failed"])
def test_a_name_of_several_arrays_is_said_to_mean_them_all(slurm: Run, options: list[str]) -> None:
    arrays = []
    for _ in range(2):
        arrays.append(printed(slurm("submit", "--name", "sweep", "--array", "0-1", "--", "false")))
        slurm("wait", arrays[-1])
    second = arrays[1]
    element = next(it["id"] for it in listed(slurm) if it["array_id"] == arrays[0])

    done = slurm("resubmit", *options, "sweep")

    why = "this is number 1, which had ended when the newest was submitted"
    note = f"and 1 more are repeated, too; sweep stands for 2 jobs: {why}, {second}\n"
    assert done.stderr.decode().startswith(f"jpsi: job {element} (sweep, index 0, ")
    assert done.stderr.decode().endswith(note)
    assert len(done.stdout.split()) == 2
    assert slurm("resubmit", second).stderr == b""
    # what repeats nothing does not say so
    refused = slurm("resubmit", *options, "--after", "nosuch", second, "sweep")
    assert b"repeated, too" not in refused.stderr
    assert refused.returncode == 2


_SCRIPT = """\
#!/bin/sh
#SBATCH --array=0-6:3
#SBATCH --time=10
range=$SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX:$SLURM_ARRAY_TASK_STEP
echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $range"
test -e ok-$SLURM_ARRAY_TASK_ID
"""


@pytest.mark.parametrize("is_converted", [False, True])
def test_a_script_knows_its_array_in_each_repetition(slurm: Run, tmp_path: Path, is_converted: bool) -> None:
    """Many scripts divide the work by the number of indices."""
    script = tmp_path / "job.sh"
    script.write_text(_SCRIPT)
    script.chmod(0o700)
    command = ["--array", "0-6:3", "--", "./job.sh"]
    if is_converted:
        (tmp_path / "job.yaml").write_text(slurm("convert", "job.sh").stdout.decode())
        command = ["-f", "job.yaml"]
    # it warns of the directives that it ignores
    job = slurm("submit", *command).stdout.decode().strip()
    seen = []
    for mended in ("ok-0", "ok-3", "ok-6"):
        slurm("wait", job)
        seen.append(slurm("logs", job).stdout.decode().splitlines())
        (tmp_path / mended).touch()
        job = printed(slurm("resubmit", "--failed", job))

    assert slurm("wait", job).returncode == 0
    texts = [f"{it} of 3, 0-6:3" for it in (0, 3, 6)]
    assert [it[1::2] for it in seen] == [texts, texts, texts[1:]]
    assert slurm("logs", job).stdout.decode().splitlines() == texts[2:]


@pytest.mark.parametrize(
    ("option", "count"), [("--no-inherit-env", 0), ("--env=A=", 1)], ids=["inherits nothing", "inherits"]
)
def test_a_job_in_no_array_finds_its_own_id_as_that_of_the_array(slurm: Run, option: str, count: int) -> None:
    shown = printed(slurm("run", option, "--env", "JPSI_ARRAY_INDEX=3", "--", "/usr/bin/env"))

    assert shown.splitlines().count("SLURM_ARRAY_JOB_ID=1") == shown.count("SLURM_ARRAY_JOB_ID") == count


@pytest.mark.parametrize("is_array", [False, True], ids=["a job", "elements"])
def test_what_the_batch_system_itself_has_ended_has_failed(
    slurm: Run, fake: FakeScheduler, is_array: bool
) -> None:
    array = ("--array", "0-2") if is_array else ()
    job = printed(slurm("submit", "--hold", "--name", "sim", *array, "--", "true"))
    open_ = slurm("resubmit", "--failed", job).stderr.decode()
    whose = "3 jobs have not ended, and are" if is_array else f"job {job} (sim) has not ended, and is"
    assert f"{whose} left out: jpsi wait {job}\n" in open_
    before = len(fake.jobs)
    fake.cancel_all([it.native_id for it in fake.jobs])

    if is_array:
        # an element may have run, and left its exit code in a directory that is seen later
        slurm("wait", job)
    assert printed(slurm("resubmit", "--failed", job))

    assert len(fake.jobs) == 2 * before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("hold", "sim"), "jpsi: job {id} has ended: it is CANCELED"),
        (("usage", "sim"), ""),
        (
            ("submit", "--after", "sim", "--", "true"),
            "jpsi: the job {id} (sim) was to complete first, but it is CANCELED",
        ),
        (
            ("run", "--after", "sim", "--", "true"),
            "jpsi: the job {id} (sim) was to complete first, but it is CANCELED",
        ),
        (
            ("submit", "--array", "1-2", "--after", "sim", "--", "true"),
            "jpsi: the job {id} (sim) was to complete first, but it is CANCELED",
        ),
    ],
    ids=["hold", "usage", "after", "run", "array"],
)
def test_an_end_that_a_command_learns_is_kept(
    slurm: Run, fake: FakeScheduler, command: tuple[str, ...], message: str
) -> None:
    job = printed(slurm("submit", "--hold", "--name", "sim", "--", "true"))
    fake.cancel_all([it.native_id for it in fake.jobs])

    result = slurm(*command)

    assert message.format(id=job) in result.stderr.decode().splitlines() or not message
    assert "QUEUED" not in result.stderr.decode()
    assert [it["state"] for it in listed(slurm)] == ["CANCELED"]


def test_what_was_resubmitted_is_not_resubmitted_again(slurm: Run) -> None:
    job = printed(slurm("submit", "--name", "sim", "--", "false"))
    slurm("wait", job)
    again = printed(slurm("resubmit", "--failed", "sim"))
    slurm("wait", again)

    (third,) = printed(slurm("resubmit", "--failed", "sim")).split()
    result = slurm("resubmit", "--failed", job)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr.decode() == (
        f"jpsi: nothing to submit: what failed was submitted again before, as {third}\n"
    )
    assert third not in {job, again}
    assert len(listed(slurm)) == 3

    other = printed(slurm("submit", "--name", "fit", "--", "false"))
    slurm("wait", other)
    fourth = printed(slurm("resubmit", "--failed", other))
    both = slurm("resubmit", "--failed", job, other).stderr.decode()
    assert both == f"jpsi: nothing to submit: what failed was submitted again before, as {third}, {fourth}\n"


def test_what_became_of_repetitions_is_shown_with_what_failed(slurm: Run, tmp_path: Path) -> None:
    array = printed(slurm("submit", "--name", "sweep", "--array", "0-2", "--", *_COMMAND))
    slurm("wait", array)
    (tmp_path / "ok-1").touch()
    again = printed(slurm("resubmit", "--failed", f"{array}[1-2]"))
    slurm("wait", again)

    counted = f"{again[:8]} has repeated 2 of them: 1 COMPLETED, 1 FAILED\n"
    assert f"also index 1-2; {counted}" in slurm("ls", array).stdout.decode()
    assert f"- {counted}" in slurm("explain", array).stdout.decode()

    (tmp_path / "ok-2").touch()
    last = printed(slurm("resubmit", "--failed", again))
    slurm("wait", last)
    ended = f"{last[:8]} has repeated it, and completed\n"
    assert ended in slurm("ls", f"{array}[2]").stdout.decode()
    assert f"- {ended}" in slurm("explain", f"{array}[2]").stdout.decode()


def test_of_jobs_that_failed_alike_the_repetition_is_explained(run: Run) -> None:
    options = ("--name", "sim", "--stdout", "missing/a", "--", "true")
    first = run("submit", *options).stdout.decode().strip()
    run("wait", first)
    again = printed(run("resubmit", first))
    run("wait", again)

    explained = run("explain", "sim").stdout.decode()

    assert explained.startswith(f"==> {again[:8]} (sim) and 1 more like it: {first[:8]} <==\n")
    assert f"submit it again: jpsi resubmit {again}\n" in explained
    assert "repeated" not in explained
    assert f"- {again[:8]} has repeated it, and failed, too\n" in run("explain", first).stdout.decode()


def test_of_a_job_and_its_repetitions_the_last_is_repeated(slurm: Run) -> None:
    array = printed(slurm("submit", "--name", "sim", "--array", "1,2", "--", "true"))
    slurm("wait", array)
    single = printed(slurm("resubmit", "sim[2]"))
    slurm("wait", single)

    result = slurm("resubmit", "sim")
    ids = result.stdout.decode().split()
    assert result.stderr.decode() == (
        "jpsi: 1 earlier run is left out; only the last run of each job is repeated\n"
    )
    assert len(listed(slurm)) == 5
    slurm("wait", *ids)
    # the id of one run means this one
    assert printed(slurm("resubmit", f"{array}[2]"))


@pytest.fixture
def _home(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process find the jobs of `jpsi`."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, environment[name])


def failed_job(run: Run) -> job_store.StoredJob:
    job = printed(run("submit", "--", "false"))
    run("wait", job)
    (found,) = job_store.jobs()
    return found


def resubmit_failed(*words: str) -> int:
    return resubmit.resubmit(jobs=words, only_failed=True, after=(), as_json=False)


@pytest.mark.usefixtures("_home")
def test_what_can_never_start_as_the_job_before_has_failed_already_is_named(
    run: Run, gate: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    first = printed(
        run("submit", "--name", "a", "--", "sh", "-c", f"! test -p {gate} || read it <{gate}; exit 1")
    )
    second = run("submit", "--name", "b", "--after", first, "--", "true").stdout.decode().strip()
    gate.write_text("")
    run("wait", first, second)
    gate.unlink()
    submit_to = resubmit.submit_to

    def submit_and_wait(*args: Any, **options: Any) -> int:
        code = submit_to(*args, **options)
        assert all(job.wait(60) for job in args[2])
        return code

    monkeypatch.setattr(resubmit, "submit_to", submit_and_wait)

    assert resubmit_failed("a", "b") == 125
    out, err = capfd.readouterr()
    (again,) = out.split()
    why = f"the job {again} (a) was to complete first, but it is FAILED with exit code 1"
    assert err == f"jpsi: job {second} (b) is not repeated: {why}\n"


@pytest.mark.usefixtures("_home")
def test_of_two_commands_at_once_one_repeats_a_job(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    job = failed_job(run)
    select, others = resubmit.select_jobs, list[str]()

    def select_and_lose(words: Any, jobs: Any) -> Any:
        found = select(words, jobs)
        # meanwhile the other one has come to its end
        others.append(printed(run("resubmit", "--failed", job.id)))
        return found

    monkeypatch.setattr(resubmit, "select_jobs", select_and_lose)

    assert resubmit_failed(job.id) == 0
    assert capfd.readouterr() == (
        "",
        f"jpsi: nothing to submit: what failed was submitted again before, as {others[0]}\n",
    )
    assert len(job_store.jobs()) == 2


@pytest.mark.usefixtures("_home")
def test_a_command_waits_for_the_end_of_another_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    job = failed_job(run)
    monkeypatch.setattr(job_store, "_PATIENCE_SECONDS", 0.0)

    with (job.origin.path / "repetitions").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(
            jpsi.SubmitException, match="another process is repeating jobs of local; try again"
        ):
            resubmit_failed(job.id)

    assert len(job_store.jobs()) == 1
    assert resubmit_failed(job.id) == 0


@pytest.mark.usefixtures("_home")
def test_a_command_that_was_killed_before_it_submitted_is_repeated(run: Run) -> None:
    job = failed_job(run)
    spool = Spool(job.origin.path)
    intent = spool.intent(job.id, 1)
    assert intent is not None
    spec = {**intent.content["spec"], "attributes": {"custom_attributes": {"jpsi.repeats": job.id}}}
    os.close(spool.prepare("killed", 1, {**intent.content, "id": "killed", "spec": spec}, ""))

    again = printed(run("resubmit", "--failed", job.id))

    found = {it.id: it for it in job_store.jobs()}
    assert found.keys() == {job.id, "killed", again}
    assert found[again].repeats == job.id


@pytest.mark.usefixtures("_home")
def test_a_job_that_was_never_submitted_is_submitted_again(run: Run) -> None:
    with jpsi.JobExecutor("local") as local:
        job = jpsi.Job(jpsi.JobSpec("/bin/false"))
        deferral = job_store.defer(local, [job])
    deferral.give_up(job.id, "no such account")

    result = run("resubmit", "--failed", job.id)
    again = result.stdout.decode().strip()
    assert result.stderr.decode() == (
        f"jpsi: job {job.id} was never submitted; jpsi repeats it like one that failed\n"
    )
    assert run("wait", again).returncode == 1
    last = printed(run("resubmit", "--failed", again))

    # the last one repeats the first, too
    result = run("resubmit", "--failed", job.id)
    assert result.stderr.decode() == (
        f"jpsi: nothing to submit: what failed was submitted again before, as {last}\n"
    )
    assert len({job.id, again, last}) == 3


_TASK = ("--env", "JPSI_TASK=fit", "--env", "JPSI_REPLICAS=1")
_EXECUTION = ("--env", "JPSI_EXECUTION=01a22923")


@pytest.mark.parametrize(
    ("options", "owner", "again"),
    [
        (_TASK, "workflow", "jpsi workflow run --failed FILE"),
        (_EXECUTION, "request", "jpsi request run FILE"),
    ],
    ids=["workflow", "request"],
)
def test_the_job_of_a_workflow_or_request_is_repeated_with_a_warning(
    run: Run, options: Sequence[str], owner: str, again: str
) -> None:
    job = printed(run("submit", *options, "--", "cat", "missing"))
    run("wait", job)

    result = run("resubmit", job)

    assert result.stderr.decode() == (
        f"jpsi: warning: job {job} is that of a {owner}, which takes no notice of the new one; "
        f"to run it again there: {again}\n"
    )
    new = result.stdout.decode().strip()
    assert run("wait", new).returncode == 1
    # that one is no job of theirs, though it has their variables
    first, second = (run("explain", it).stdout.decode() for it in (job, new))
    assert f"paths are relative to the `cwd` of its {owner}" in first
    assert "paths are relative to --dir" in second
    assert run("wait", printed(run("resubmit", new))).returncode == 1


def test_the_job_of_a_request_whose_files_were_removed_is_not_repeated(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    job = printed(run("submit", *_EXECUTION, "--dir", str(root), "--", "false"))
    run("wait", job)
    root.rmdir()

    result = run("resubmit", job)

    assert (result.returncode, result.stdout) == (2, b"")
    why = f"is that of a request, and there is no directory {root} any more"
    assert result.stderr.decode() == f"jpsi: job {job} {why}: jpsi request run FILE\n"


@pytest.mark.usefixtures("_home")
def test_the_job_of_a_request_whose_directory_may_not_be_read_is_repeated(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, stat = tmp_path / "root", Path.stat
    root.mkdir()
    job = printed(run("submit", *_EXECUTION, "--dir", str(root), "--", "false"))
    run("wait", job)

    def refuse(path: Path, **options: Any) -> os.stat_result:
        if path == root:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    # root, who may run this, may read any directory
    monkeypatch.setattr(Path, "stat", refuse)

    assert resubmit_failed(job) == 0
    assert len(job_store.jobs()) == 2


@pytest.mark.usefixtures("_home")
def test_an_unsent_job_of_a_remote_host_is_not_ended(run: Run) -> None:
    """The clients of other machines keep records of their own, and may submit it."""
    job = failed_job(run)
    spool = Spool(job.origin.path)
    intent = spool.intent(job.id, 1)
    assert intent is not None
    os.close(spool.prepare("remote", 1, {**intent.content, "id": "remote", "remote": {}}, ""))
    spool.revoke("remote", 1)
    spool.give_up("remote", 1, "the controller is busy")

    refused = run("cancel", "remote")

    assert refused.returncode == 125
    assert refused.stderr.decode() == (
        "jpsi: job remote: it was not submitted, and cannot run: the controller is busy; "
        "submit it again: jpsi show --document remote | jpsi submit -f -\n"
    )
    assert {it.id: it.status.state for it in job_store.jobs()}["remote"] is jpsi.JobState.NEW


@pytest.mark.usefixtures("_home")
def test_a_job_that_its_program_may_still_submit_is_left_out(run: Run) -> None:
    job = failed_job(run)
    spool = Spool(job.origin.path)
    intent = spool.intent(job.id, 1)
    assert intent is not None
    os.close(spool.prepare("retried", 1, {**intent.content, "id": "retried"}, ""))
    spool.revoke("retried", 1)
    spool.give_up("retried", 1, "the controller is busy")

    one, several = run("resubmit", "retried"), run("resubmit", "--failed", "retried", job.id)

    advice = "the program that was to submit it may still do so; end it first: jpsi cancel retried\n"
    assert (one.returncode, one.stderr.decode()) == (2, f"jpsi: job retried was never submitted: {advice}")
    assert several.stderr.decode() == f"jpsi: job retried was never submitted, and left out: {advice}"
    assert several.returncode == 0
    assert len(job_store.jobs()) == 3


@pytest.mark.usefixtures("_home")
def test_a_job_and_its_repetition_that_was_never_submitted_make_one_job(run: Run) -> None:
    job = failed_job(run)
    (spec,) = job_store.repeated_specs({job.id: job.spec})
    with jpsi.JobExecutor("local") as local:
        second = jpsi.Job(spec)
        deferral = job_store.defer(local, [second])
    deferral.give_up(second.id, "no such account")

    again = printed(run("resubmit", "--failed", job.id, second.id))

    (found,) = [it for it in job_store.jobs() if it.id == again]
    assert found.repeats == job.id
    # what repeats the repetition would do as well
    run("wait", again)
    third = run("resubmit", "--failed", second.id).stdout.decode().strip()
    assert third
    result = run("resubmit", "--failed", job.id)
    assert (result.returncode, result.stdout) == (0, b"")


@pytest.mark.usefixtures("_home")
def test_a_deferred_job_that_no_process_submits_is_named(run: Run) -> None:
    with jpsi.JobExecutor("local") as local:
        job = jpsi.Job(jpsi.JobSpec("/bin/true"))
        job_store.defer(local, [job])

    result = run("resubmit", "--failed", job.id)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr.decode() == (
        f"jpsi: job {job.id} is yet to be submitted, but no process does that: jpsi wait {job.id}\n"
        "jpsi: nothing to submit: none has failed or was cancelled\n"
    )


@pytest.mark.usefixtures("_home")
def test_the_queues_are_asked_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    job = failed_job(run)
    queries, find_excess = list[str](), job_limits.find_excess

    def count(executor: jpsi.JobExecutor, specs: Any) -> Any:
        queries.append(executor.name)
        return find_excess(executor, specs)

    monkeypatch.setattr(job_limits, "find_excess", count)

    assert resubmit_failed(job.id) == 0
    assert queries == ["local"]


def test_one_element_is_repeated_alone(slurm: Run, tmp_path: Path) -> None:
    array = printed(slurm("submit", "--array", "0-1", "--", *_COMMAND))
    slurm("wait", array)
    (tmp_path / "ok-1").touch()

    again = printed(slurm("resubmit", "1_2"))
    assert slurm("wait", again).returncode == 0
    (job,) = [it for it in listed(slurm) if it["id"] == again]
    assert (job["array_id"], job["array_index"]) == (None, 1)


def test_options_override_the_request_and_the_directory_stays(run: Run, tmp_path: Path) -> None:
    job = printed(run("submit", "--time", "10m", "--", "sh", "-c", "pwd; false"))
    run("wait", job)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    result = run("resubmit", "--time", "2h", "--memory", "1G", job, cwd=elsewhere)
    again = result.stdout.decode().strip()
    warning = b"jpsi: warning: local is no batch system: --memory has no effect\n"
    assert (result.returncode, result.stderr) == (0, warning)
    run("wait", again)
    (shown,) = json.loads(run("show", "--json", again).stdout)
    assert "7200" in json.dumps(shown["document"])
    assert str(2**30) in json.dumps(shown["document"])
    assert run("logs", again).stdout.decode() == f"{tmp_path}\n"


def test_the_directory_of_the_old_job_is_made_again(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    job = printed(run("submit", "--dir", str(place), "--", "pwd"))
    run("wait", job)
    place.rmdir()

    refused = run("resubmit", job)
    assert refused.returncode == 2
    assert b"make it, or use --create-dir" in refused.stderr
    again = printed(run("resubmit", "--create-dir", job))

    assert run("wait", again).returncode == 0
    assert run("logs", again).stdout.decode() == f"{place}\n"


def awaited(run: Run, job: str) -> list[tuple[str, str]]:
    """Return the native ids of the jobs that a job waits for, and how these must end."""
    return re.findall(r"- job: '(\S+)'\n +kind: (\w+)", run("show", "--document", job).stdout.decode())


def native_ids(run: Run) -> dict[str, str]:
    return {it["id"]: it["native_id"] for it in listed(run)}


def chain(run: Run, *kinds: str) -> list[str]:
    """Submit jobs that fail, which wait each for the one before; return their ids."""
    ids: list[str] = []
    for name, kind in zip("abc", ("", *kinds), strict=False):
        after = ("--after", f"{kind}:{ids[-1]}") if ids else ()
        ids.append(
            printed(run("submit", "--name", name, *after, "--", "sh", "-c", f"echo {name} >>out; test -e ok"))
        )
        # the next one is submitted after the end of this one
        run("wait", ids[-1])
    return ids


def test_repeated_jobs_wait_for_each_other_as_the_old_ones_did(slurm: Run, fake: FakeScheduler) -> None:
    chain(slurm, "notok", "any")
    fake.slots = 0

    # the order of the words is not that of the jobs
    ids = printed(slurm("resubmit", "--failed", "c", "b", "a")).split()

    a, b, _ = (native_ids(slurm)[it] for it in ids)
    assert [it["name"] for it in listed(slurm)[3:]] == ["a", "b", "c"]
    assert [awaited(slurm, it) for it in ids] == [[], [(a, "notok")], [(b, "any")]]
    slurm("cancel", *ids)


def test_jpsi_waits_for_repeated_jobs_where_no_system_does(run: Run, gate: Path, tmp_path: Path) -> None:
    first = run("submit", "--", "sh", "-c", f"cat '{gate}'; echo a >>out; test -e ok").stdout.decode().strip()
    second = run("submit", "--after", first, "--", "sh", "-c", "echo b >>out").stdout.decode().strip()
    gate.write_text("")
    assert run("wait", first, second).returncode == 1
    (tmp_path / "ok").touch()

    alone = run("resubmit", second)
    again = run("resubmit", "--failed", second, first)
    new = again.stdout.decode().split()
    gate.write_text("")

    assert (alone.returncode, alone.stdout, alone.stderr.decode()) == (
        2,
        b"",
        (
            f"jpsi: job {second}: the job {first} was to complete first, but it is FAILED with exit code 1; "
            f"resubmit both, or start this one all the same: --after any:{first}\n"
        ),
    )
    assert again.stderr.decode().startswith(f"jpsi: local cannot wait for job {new[0]}, so process ")
    assert run("wait", *new).returncode == 0
    assert (tmp_path / "out").read_text() == "a\na\nb\n"
    # what it waits for has completed meanwhile
    assert run("wait", printed(run("resubmit", second))).returncode == 0


def test_the_advice_keeps_what_else_a_job_waits_for(slurm: Run, fake: FakeScheduler) -> None:
    """`--after` takes the place of all jobs that are not repeated, also of one that still runs."""
    fake.slots = 0
    array = printed(slurm("submit", "--array", "0-2", "--", *_COMMAND))
    running = printed(slurm("submit", "--hold", "--", "true"))
    after = ("--after", f"{array}[0,2]", "--after", running)
    plot = printed(slurm("submit", *after, "--", "true"))
    with fake.lock:
        fake.slots = 8
        fake.settle()
    slurm("wait", array)
    slurm("cancel", plot)

    refused = slurm("resubmit", plot)
    *_, advice = refused.stderr.decode().strip().partition("all the same: ")
    again = printed(slurm("resubmit", *shlex.split(advice), plot))

    assert advice == f"--after 'any:{array}[0,2]' --after ok:{running}"
    assert awaited(slurm, again) == [(native_ids(slurm)[running], "ok")]
    slurm("cancel", again, running)


def test_a_job_starts_all_the_same_if_it_waits_for_another_end(run: Run) -> None:
    first, second = chain(run, "any")

    assert run("wait", printed(run("resubmit", "--after", f"any:{first}", second))).returncode == 1


def test_the_end_of_a_job_that_is_not_repeated_is_asked_for(slurm: Run, fake: FakeScheduler) -> None:
    """A batch system may not know the job any more, and refuse one that waits for it."""
    first = printed(slurm("submit", "--hold", "--", "true"))
    second = printed(slurm("submit", "--after", f"any:{first}", "--", "true"))
    assert slurm("cancel", second).returncode == 0
    fake.cancel_all([it.native_id for it in fake.jobs])

    again = printed(slurm("resubmit", second))

    assert awaited(slurm, again) == []
    assert slurm("wait", again).returncode == 0


def test_an_array_waits_for_the_elements_of_another_that_are_repeated(
    slurm: Run, fake: FakeScheduler, tmp_path: Path
) -> None:
    (tmp_path / "ok-1").touch()
    fake.slots = 0
    first = printed(slurm("submit", "--array", "0-2", "--", *_COMMAND))
    second = printed(slurm("submit", "--after", first, "--array", "4-5", "--", "true"))
    with fake.lock:
        fake.slots = 8
        fake.settle()
    slurm("wait", first)
    slurm("cancel", second)
    with fake.lock:
        fake.slots = 0

    ids = printed(slurm("resubmit", "--failed", second, first)).split()

    new = [it for it in listed(slurm) if it["array_id"] in ids]
    assert [(it["array_id"], it["array_index"]) for it in new] == [
        (ids[0], 0),
        (ids[0], 2),
        (ids[1], 4),
        (ids[1], 5),
    ]
    expected = [(it["native_id"], "ok") for it in new[:2]]
    assert [awaited(slurm, it["id"]) for it in new[2:]] == [expected, expected]
    slurm("cancel", *ids)


def test_what_waits_for_a_job_that_is_refused_is_not_submitted(slurm: Run, fake: FakeScheduler) -> None:
    first, second, _ = chain(slurm, "notok", "any")
    fake.faults.fail("sbatch", stderr="sbatch: error: the disk is full\n")

    result = slurm("resubmit", "--failed", "a", "b", "c")
    lines = result.stderr.decode().splitlines()

    assert (result.returncode, result.stdout) == (125, b"")
    assert lines[0].startswith(f"jpsi: job {first} (a) is not repeated: ")
    assert "the disk is full" in lines[0]
    why = f"the repetition of job {first} (a) was not submitted, and comes first"
    assert lines[1] == f"jpsi: job {second} (b) is not repeated: {why}"
    assert len(lines) == 3
    ids = slurm("resubmit", "--failed", "a", "b", "c").stdout.decode().split()
    assert len(ids) == 3
    slurm("wait", *ids)


def test_a_mistake_is_found_before_anything_is_submitted(slurm: Run) -> None:
    """Jobs that wait for different ones are submitted one after the other."""
    first = printed(slurm("submit", "--name", "a", "--", "true"))
    slurm("wait", first)
    second = printed(slurm("submit", "--name", "b", "-n", "1", "--after", first, "--", "true"))
    slurm("wait", second)

    result = slurm("resubmit", "-N", "2", "a", "b")

    assert result.stderr.decode() == (
        f"jpsi: job {second} (b): resources: 1 processes cannot occupy 2 nodes\n"
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert len(listed(slurm)) == 2


def test_a_job_that_was_submitted_held_is_repeated_at_once(slurm: Run) -> None:
    job = printed(slurm("submit", "--hold", "--", "false"))
    slurm("release", job)
    slurm("wait", job)

    again = printed(slurm("resubmit", job))
    assert slurm("wait", "--timeout", "30", again).returncode == 1


def test_the_new_job_may_wait_for_others(run: Run) -> None:
    job = printed(run("submit", "--", "false"))
    run("wait", job)
    held = run("submit", "--hold", "--", "true").stdout.decode().strip()

    again = run("resubmit", "--after", held, job).stdout.decode().strip()
    (shown,) = json.loads(run("show", "--json", again).stdout)
    assert (shown["state"], shown["remark"].startswith(f"it is submitted after {held[:8]}")) == ("NEW", True)
    assert run("cancel", again, held).returncode == 0


def test_what_waits_for_a_job_that_was_cancelled_just_now_is_repeated_too(run: Run, gate: Path) -> None:
    """The process that is to submit the second and the third job ends them only a moment later."""
    first = printed(run("submit", "--name", "a", "--", "sh", "-c", f"cat '{gate}'"))
    run("submit", "--name", "b", "--after", first, "--", "true")
    run("submit", "--name", "c", "--after", "b", "--", "true")
    assert run("cancel", "a").returncode == 0

    again = run("resubmit", "--failed", "a", "b", "c")

    ids = again.stdout.decode().split()
    assert [it["name"] for it in listed(run)][3:] == ["a", "b", "c"]
    assert "left out" not in again.stderr.decode()
    gate.write_text("")
    assert run("wait", *ids).returncode == 0


def test_the_quoted_output_of_a_command_means_all_jobs_that_it_names(slurm: Run) -> None:
    for _ in range(2):
        script = "exit $((JPSI_ARRAY_INDEX == 1))"
        array = slurm("submit", "--name", "rep", "--array", "0-1", "--", "sh", "-c", script).stdout
        slurm("wait", array.decode().strip())

    again = slurm("resubmit", "--failed", "rep").stdout.decode().removesuffix("\n")
    assert len(again.splitlines()) == 2

    waited = slurm("wait", again)
    assert (waited.returncode, waited.stderr.count(b"FAILED")) == (1, 2)
    assert b"no job has the id, native id or name 'nosuch';" in slurm("wait", f"{again}\nnosuch").stderr
    behind = printed(slurm("submit", "--after", f"any:{again}", "--", "true"))
    assert slurm("wait", behind).returncode == 0
    assert slurm("submit", "--after", again, "--", "true").stderr.count(b"was to complete first") == 2


def test_elements_that_a_process_is_yet_to_submit_have_not_ended(run: Run) -> None:
    array = run("submit", "--array", "0-2%1", "--", "sleep", "1000").stdout.decode().strip()

    result = run("resubmit", "--failed", array)

    expected = f"jpsi: 3 jobs have not ended, and are left out: jpsi wait {array}\n"
    assert result.stderr.decode().startswith(expected)
    assert run("cancel", array).returncode == 0


def test_a_job_that_has_not_ended_is_not_repeated(run: Run) -> None:
    job = run("submit", "--hold", "--", "true").stdout.decode().strip()

    result = run("resubmit", job)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode() == (
        f"jpsi: job {job} has not ended: it is held, and not submitted yet: jpsi release {job}\n"
    )


def test_nothing_failed(run: Run) -> None:
    job = printed(run("submit", "--", "true"))
    run("wait", job)

    result = run("resubmit", "--failed", job)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr == b"jpsi: nothing to submit: none has failed or was cancelled\n"


def test_a_document_of_an_element_is_that_of_a_single_job(slurm: Run, tmp_path: Path) -> None:
    array = printed(slurm("submit", "--array", "4-5", "--", *_COMMAND))
    slurm("wait", array)
    (tmp_path / "ok-5").touch()

    document = slurm("show", "--document", "1_2").stdout
    assert b"jpsi.array_id" not in document
    result = slurm("run", "-f", "-", input=document)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"5\n", b"")
    assert [it["array_id"] for it in listed(slurm)] == [array, array, None]


def test_documents_of_several_jobs_are_lines_of_json(slurm: Run, tmp_path: Path) -> None:
    array = printed(slurm("submit", "--array", "4-5", "--", *_COMMAND))
    slurm("wait", array)

    refused = slurm("show", "--document", array)
    assert refused.returncode == 2
    assert refused.stderr.decode() == (
        "jpsi: these are 2 jobs, and a document is one; --json writes a document on each line, for: "
        "jpsi submit --many -\n"
    )
    lines = slurm("show", "--document", "--json", array).stdout
    assert len(lines.splitlines()) == 2
    assert slurm("submit", "--many", "-", input=lines).returncode == 0


def test_logs_of_a_job_say_that_its_file_was_written_again_since(run: Run, tmp_path: Path) -> None:
    script = f"echo first >&2; [ -e {tmp_path}/mended ] && echo second"
    job = printed(run("submit", "--stdout", "out.txt", "--", "sh", "-c", script))
    run("wait", job)
    (tmp_path / "mended").touch()
    again = printed(run("resubmit", "--failed", job))
    run("wait", again)

    # this one waits, and has written nothing yet
    held = run("submit", "--hold", "--", "true").stdout.decode().strip()
    third = run("resubmit", "--after", held, again).stdout.decode().strip()

    old, new, errors = run("logs", job), run("logs", again), run("logs", "--stderr", job)
    followed = run("logs", "-f", job)
    run("cancel", third, held)

    assert third
    assert (old.stdout, new.stdout, errors.stdout) == (b"second\n", b"second\n", b"first\n")
    assert (followed.stdout, followed.stderr) == (old.stdout, old.stderr)
    since = f"jpsi: job {job}: {again[:8]} has repeated it since, and wrote to the same file\n"
    assert (old.stderr.decode(), new.stderr, errors.stderr) == (since, b"", b"")
