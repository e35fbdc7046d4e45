"""An array is one thing: submitted, listed, waited for, explained and ended by one word."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi_testing.fake import FakeScheduler, FakeState, on_path

Run = Callable[..., subprocess.CompletedProcess[bytes]]
SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=heat
#SBATCH --array=0-6:3%2
#SBATCH --time=10
echo "element $SLURM_ARRAY_TASK_ID"
"""


@pytest.fixture
def fake() -> Iterator[FakeScheduler]:
    with FakeScheduler(slots=0) as fake, on_path("slurm", fake):
        yield fake


@pytest.fixture
def slurm(run: Run, fake: FakeScheduler, environment: dict[str, str]) -> Run:
    """Run `jpsi` with the fake Slurm on its PATH."""
    Path(environment["XDG_CONFIG_HOME"], "jpsi").mkdir()
    Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml").write_text("default_executor: slurm\n")
    here = {**environment, "PATH": os.environ["PATH"]}
    return lambda *arguments, **options: run(*arguments, **{"env": here, **options})


def free_slots(fake: FakeScheduler) -> None:
    with fake.lock:
        fake.slots = 8
        fake.settle()


def printed(result: subprocess.CompletedProcess[bytes]) -> str:
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout.decode().strip()


def states(slurm: Run, *options: str) -> dict[str, Any]:
    return {it["native_id"]: it["state"] for it in json.loads(slurm("ls", "--json", *options).stdout)}


def test_an_array_has_one_id_and_one_line(slurm: Run, fake: FakeScheduler, tmp_path: Path) -> None:
    command = ("sh", "-c", "echo $JPSI_ARRAY_INDEX; exit $((JPSI_ARRAY_INDEX == 2))")
    array = printed(slurm("submit", "-J", "sweep", "-a", "1-3%2", "-o", "out-%a", "--", *command))

    assert states(slurm) == {"1_1": "QUEUED", "1_2": "QUEUED", "1_3": "QUEUED"}
    heading, line = slurm("ls").stdout.decode().splitlines()
    assert heading.split() == ["ID", "NATIVE", "ID", "NAME", "EXECUTOR", "STATE", "AGE"]
    assert line.split()[:6] == [array[:8], "1", "sweep", "slurm", "3", "QUEUED"]
    assert len(slurm("ls", "--members").stdout.splitlines()) == 4
    assert len(printed(slurm("ls", "--ids", "--members")).split()) == 3
    assert printed(slurm("ls", "--ids", "--limit", "1")) == array

    free_slots(fake)
    assert [slurm("wait", word).returncode for word in (array, array[:8], "1", "sweep")] == [1] * 4
    assert [slurm("wait", word).returncode for word in ("1_1", "1_[1,3]", "1_[1-2%2]")] == [0, 0, 1]
    assert [(tmp_path / f"out-{index}").read_text() for index in (1, 2, 3)] == ["1\n", "2\n", "3\n"]
    assert "2 COMPLETED, 1 FAILED" in slurm("ls").stdout.decode()
    assert "index 2 (1_2) failed: exit code 1" in slurm("ls").stdout.decode()
    assert slurm("logs", "1").stdout.decode().splitlines() == [
        *("==> index 1 (1_1, sweep) <==", "1", "==> index 2 (1_2, sweep) <==", "2"),
        *("==> index 3 (1_3, sweep) <==", "3"),
    ]
    assert slurm("attach", "1").returncode == 1
    assert len(slurm("attach", "-x", "slurm", "--json", "1").stdout.splitlines()) == 3
    assert slurm("attach", "sweep").returncode == 1
    explained = slurm("explain", array)
    assert explained.stderr == b""
    headings = [line for line in explained.stdout.decode().splitlines() if line.startswith("==>")]
    assert headings == [
        "==> index 1 (1_1, sweep) and 1 more like it, index 3 <==",
        "==> index 2 (1_2, sweep) <==",
    ]
    assert b"returned exit code 1" in explained.stdout
    lines = slurm("explain", "--json", array).stdout.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["COMPLETED", "FAILED"]


def test_the_index_that_the_user_gave_is_shown_everywhere(slurm: Run, fake: FakeScheduler) -> None:
    """The batch system counts from 1, so its id alone would name another element."""
    free_slots(fake)
    array = printed(slurm("submit", "-a", "0-3", "--", "sh", "-c", "exit $((JPSI_ARRAY_INDEX == 2))"))

    waited = slurm("wait", array)
    job = json.loads(slurm("ls", "--json", "--state", "failed").stdout)[0]
    assert waited.stderr.decode() == (
        f"jpsi: job {job['id']} (index 2, native id 1_3): FAILED: the executable returned exit code 1\n"
    )
    assert (job["array_id"], job["array_index"]) == (array, 2)
    assert "index 2 (1_3) failed" in slurm("ls").stdout.decode()
    heading, line = slurm("ls", "--members", "--state", "failed").stdout.decode().splitlines()
    assert heading.split()[:4] == ["ID", "NATIVE", "ID", "INDEX"]
    assert line.split()[1:3] == ["1_3", "2"]
    assert "==> index 2 (1_3) <==" in slurm("explain", array).stdout.decode()
    assert "==> index 2 (1_3) <==" in slurm("explain", "1_3").stdout.decode()
    assert "==> index 2 (1_3) <==" in slurm("logs", array).stdout.decode()
    assert "1_3  -  slurm  FAILED  index 2\n" in slurm("logs", "-f", array).stderr.decode()
    shown = dict(line.split(maxsplit=1) for line in slurm("show", "1_3").stdout.decode().splitlines()[:6])
    assert (shown["array:"], shown["index:"]) == (array, "2")
    assert slurm("show", "--json", shown["array:"]).returncode == 0


def test_all_elements_that_failed_are_named(run: Run) -> None:
    array = printed(run("submit", "-a", "0-9:3,20", "--", "sh", "-c", "exit $((JPSI_ARRAY_INDEX > 0))"))
    run("wait", array)

    assert run("ls").stdout.decode().endswith(" failed: exit code 1; also index 6,9,20\n")
    headings = [it for it in run("explain", array).stdout.decode().splitlines() if it.startswith("==>")]
    assert headings[1].startswith("==> index 3 (")
    assert headings[1].endswith(") and 3 more like it, index 6,9,20 <==")


def test_elements_that_failed_alike_are_repeated_by_one_command(run: Run) -> None:
    submitted = run("submit", "-a", "1,2", "--stdout", "missing/%a", "--", "true")
    array = submitted.stdout.decode().strip()
    run("wait", array)

    explained = run("explain", array).stdout.decode()
    assert f"submit it again: jpsi resubmit --failed {array}\n" in explained


def test_this_machine_shows_the_index_without_a_native_id(run: Run) -> None:
    array = printed(run("submit", "-a", "7,8", "--", "sh", "-c", "exit $((JPSI_ARRAY_INDEX == 8))"))

    assert run("wait", array).stderr.decode().partition(": ")[2].split(": ")[0].endswith(" (index 8)")
    (failed,) = printed(run("ls", "--ids", "--state", "failed")).split()
    assert f"index 8 ({failed[:8]}) failed: exit code 1" in run("ls").stdout.decode()
    assert f"==> index 8 ({failed[:8]}) <==" in run("explain", array).stdout.decode()


def test_submitted_elements_are_described_in_json(slurm: Run) -> None:
    lines = printed(slurm("submit", "--json", "-a", "0,5", "--", "true")).splitlines()

    assert [json.loads(line)["array_index"] for line in lines] == [0, 5]
    assert {json.loads(line)["array_id"] for line in lines} != {None}


def test_the_id_of_an_array_of_one_is_the_one_that_is_listed(slurm: Run) -> None:
    job = printed(slurm("submit", "--array", "13", "--", "true"))

    assert printed(slurm("ls", "--ids")) == job
    heading, line = slurm("ls").stdout.decode().splitlines()
    assert heading.split()[3] == "INDEX"
    assert line.split()[:3] == [job[:8], "1", "13"]
    assert slurm("cancel", job).returncode == 0


def test_the_verbs_take_arrays(slurm: Run, fake: FakeScheduler) -> None:
    array = printed(slurm("submit", "--array", "1-2", "--", "true"))

    assert slurm("hold", "1").returncode == 0
    free_slots(fake)
    assert set(states(slurm).values()) == {"QUEUED"}
    after = slurm("submit", "--after", array, "--", "true").stdout.decode().strip()
    assert slurm("release", array).returncode == 0
    assert slurm("wait", after).returncode == 0
    assert set(states(slurm).values()) == {"COMPLETED"}


def test_an_array_is_cancelled(slurm: Run) -> None:
    array = printed(slurm("submit", "--array", "1-2", "--", "true"))

    assert slurm("cancel", array).returncode == 0
    assert set(states(slurm).values()) == {"CANCELED"}


def test_elements_cancelled_before_their_start_are_final_at_once(slurm: Run, fake: FakeScheduler) -> None:
    """Of these, squeue shows one row for all that have not begun, without their indices."""
    fake.slots = 8
    array = printed(slurm("submit", "--array", "1-6%2", "--", "sleep", "100"))
    assert sorted(states(slurm, "--refresh").values()) == [*["ACTIVE"] * 2, *["QUEUED"] * 4]

    assert printed(slurm("cancel", array)) == ""
    assert set(states(slurm).values()) == {"CANCELED"}


def test_following_one_of_several_names_them(slurm: Run) -> None:
    printed(slurm("submit", "--name", "sweep", "--array", "1-2", "--", "true"))
    result = slurm("logs", "-f", "sweep")
    slurm("cancel", "sweep")

    first, *lines = result.stderr.decode().splitlines()
    assert result.returncode == 2
    assert first == (
        "jpsi: 'sweep' means 2 jobs; name one of them by its index, such as: jpsi logs -f 'sweep[2]'"
    )
    assert [line.split()[1] for line in lines] == ["1_1", "1_2"]


def test_commands_take_elements_by_their_index(slurm: Run) -> None:
    array = printed(slurm("submit", "--name", "sweep", "--array", "5-8", "--", "true"))
    later = printed(slurm("submit", "--after", "any:sweep[5,7],sweep[8]", "--", "true"))
    document = slurm("show", "--document", later).stdout.decode()
    assert printed(slurm("cancel", "sweep[5-6]")) == ""

    assert re.findall(r"job: '(\S+)'", document) == ["1_1", "1_3", "1_4"]
    assert [*states(slurm).values()] == [*["CANCELED"] * 2, *["QUEUED"] * 3]
    assert [it["array_index"] for it in json.loads(slurm("show", "--json", f"{array[:8]}[7]").stdout)] == [7]
    refused = slurm("cancel", "sweep[9]")
    assert (refused.returncode, refused.stderr.decode()) == (
        2,
        "jpsi: 'sweep[9]' means no job: sweep has the indices 5-8\n",
    )
    slurm("cancel", array, later)


def test_a_converted_script_is_an_array(slurm: Run, fake: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(SCRIPT)
    (tmp_path / "job.yaml").write_text(printed(slurm("convert", "job.sh")))
    free_slots(fake)

    array = printed(slurm("submit", "-f", "job.yaml"))
    assert slurm("wait", array).returncode == 0
    texts = slurm("logs", array).stdout.decode().splitlines()[1::2]
    assert texts == ["element 0", "element 3", "element 6"]
    refused = slurm("run", "-f", "job.yaml")
    assert refused.returncode == 2
    assert b"jpsi.array makes it several jobs: use jpsi submit" in refused.stderr
    assert printed(slurm("validate", "-x", "slurm", "-f", "job.yaml")) == "job.yaml: valid"


def test_this_machine_limits_how_many_run(run: Run) -> None:
    result = run("submit", "--array", "1-3%1", "--", "sh", "-c", "echo $JPSI_ARRAY_INDEX")

    array = result.stdout.decode().strip()
    assert re.fullmatch(
        r"jpsi: local cannot limit how many run at a time, so process [0-9]+ on \S+ does: it has to "
        r"run until the last has started\. If it is killed, jpsi ls shows that, and "
        rf"jpsi wait {array} starts another\n",
        result.stderr.decode(),
    )
    assert run("wait", array).returncode == 0
    assert run("ls").stdout.decode().split()[-3:-1] == ["3", "COMPLETED"]


@pytest.fixture
def limited(run: Run, tmp_path: Path) -> str:
    """An array whose first element runs, while the others wait for its end; return its id."""
    os.mkfifo(tmp_path / "begun")
    script = (
        "echo $JPSI_ARRAY_INDEX >>started; [ $JPSI_ARRAY_INDEX != 1 ] || { echo >begun; exec sleep 100; }"
    )
    array = run("submit", "--array", "1-3%1", "--", "sh", "-c", script).stdout.decode().strip()
    (tmp_path / "begun").read_text()
    return array


def test_a_cancel_reaches_the_elements_that_wait_for_others(run: Run, limited: str, tmp_path: Path) -> None:
    assert "2 NEW, 1 ACTIVE" in run("ls").stdout.decode()

    cancelled = run("cancel", limited)

    assert (cancelled.returncode, cancelled.stderr) == (0, b"")
    assert [it["state"] for it in json.loads(run("ls", "--json").stdout)] == ["CANCELED"] * 3
    assert (tmp_path / "started").read_text() == "1\n"


def test_a_hold_reaches_the_elements_that_wait_for_others(run: Run, limited: str, tmp_path: Path) -> None:
    first, *others = run("ls", "--ids", "--members").stdout.decode().split()
    assert run("hold", *others).returncode == 0
    assert run("cancel", first).returncode == 0

    assert [it["state"] for it in json.loads(run("ls", "--json").stdout)] == ["CANCELED", "NEW", "NEW"]
    assert (tmp_path / "started").read_text() == "1\n"
    assert run("release", *others).returncode == 0
    assert run("wait", *others).returncode == 0
    assert (tmp_path / "started").read_text() == "1\n2\n3\n"


def test_the_elements_outlive_the_process_that_starts_them(run: Run, tmp_path: Path, limited: str) -> None:
    note = run("ls", "--members").stdout.decode()
    (process,) = set(re.findall(r"process ([0-9]+) on", note))
    os.kill(int(process), signal.SIGKILL)

    first = run("ls", "--ids", "--members").stdout.decode().split()[0]
    assert run("cancel", first).returncode == 0
    assert "no process does that; start one: jpsi wait" in run("ls", "--members").stdout.decode()
    assert run("wait", limited).returncode != 0
    assert (tmp_path / "started").read_text() == "1\n2\n3\n"
    assert sorted(it["state"] for it in json.loads(run("ls", "--json").stdout)) == [
        *("CANCELED", "COMPLETED", "COMPLETED")
    ]


def test_an_interrupted_submit_says_how_many_were_submitted(
    slurm: Run, fake: FakeScheduler, start: Callable[..., Any], environment: dict[str, str], tmp_path: Path
) -> None:
    config = Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml")
    config.write_text("executors: {slurm: {config: {max_queued: 1}}}\n")
    environment["PATH"] = os.environ["PATH"]
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "go")
    free_slots(fake)

    command = ("--", "sh", "-c", ">begun; read line <go")
    started = start("submit", "-x", "slurm", "--array", "1-3", *command)
    (tmp_path / "begun").read_text()
    os.killpg(started.process.pid, signal.SIGINT)
    code, _, errors = started.end()
    (tmp_path / "go").write_text("\n")

    assert (code, errors) == (130, b"jpsi: interrupted: 1 of 3 jobs were submitted\n")


@pytest.mark.parametrize("text", ["1-x", "5-2", ""])
def test_a_mistake_submits_nothing(run: Run, text: str) -> None:
    result = run("submit", "--array", text, "--", "true")

    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode() == (
        f"jpsi: --array: {text!r} names no indices of an array, such as 1-100, 0-9:3,20 or 1-100%10\n"
    )


@pytest.mark.parametrize("option", ["--array=0-3", "-a"])
def test_a_command_for_one_job_says_which_take_arrays(run: Run, option: str) -> None:
    result = run("run", option, "--", "true")

    assert result.returncode == 2
    name = option.partition("=")[0]
    first = result.stderr.decode().splitlines()[0]
    assert first == f"jpsi: no such option '{name}'; jpsi submit has it"


def test_the_first_job_of_an_array_is_shown_as_it_is_submitted(slurm: Run) -> None:
    options = ("--array", "3-5%2", "--stdout", "out-%a", "--hold", "--", "true")

    shown = slurm("script", *options)
    one = slurm("script", "--array", "3", "--", "true")
    wrong = slurm("script", "--array", "x", "--", "true")

    assert shown.stderr == b"jpsi: warning: this is the first of the 3 jobs of an array\n"
    text = shown.stdout.decode()
    assert ("out-3" in text, "JPSI_ARRAY_INDEX=3" in text, "#SBATCH --hold" in text) == (True, True, True)
    assert (one.returncode, one.stderr) == (0, b"")
    assert b"#SBATCH --hold" not in one.stdout
    assert (wrong.returncode, b"--array: 'x' names no indices" in wrong.stderr) == (2, True)


def test_a_script_says_that_jpsi_itself_holds_a_job(run: Run) -> None:
    result = run("script", "--hold", "--", "true")

    expected = b"jpsi: warning: jpsi itself would hold this job, and submit it once it is released\n"
    assert (result.returncode, result.stderr) == (0, expected)


def test_a_script_shows_what_jpsi_submits_once_it_no_longer_waits_itself(run: Run, slurm: Run) -> None:
    held = run("submit", "-x", "local", "--hold", "--", "true").stdout.decode().strip()

    shown = slurm("script", "--hold", "--after", held, "--", "true")
    few = run("script", "-x", "local", "--array", "1-3%1", "--", "true")

    assert shown.stderr.decode() == (
        f"jpsi: warning: slurm cannot wait for job {held}: jpsi would, and then submit this\n"
        "jpsi: warning: jpsi itself would hold this job, and submit it once it is released\n"
    )
    assert b"#SBATCH --hold" not in shown.stdout
    assert few.stderr.decode().splitlines()[1] == (
        "jpsi: warning: local cannot limit how many run at a time: jpsi would, and submit this when it is "
        "its turn"
    )
    assert run("cancel", held).returncode == 0


def test_other_unknown_options_are_of_no_command(run: Run) -> None:
    result = run("run", "--quux", "--", "true")

    assert b"no such option '--quux'" in result.stderr
    assert b"jpsi submit" not in result.stderr


def test_a_job_is_submitted_held(slurm: Run, fake: FakeScheduler) -> None:
    job = printed(slurm("submit", "--hold", "--", "true"))
    free_slots(fake)

    assert states(slurm) == {"1": "QUEUED"}
    assert slurm("release", job).returncode == 0
    assert slurm("wait", job).returncode == 0


def test_this_machine_holds_a_job_by_not_starting_it(run: Run, tmp_path: Path) -> None:
    result = run("submit", "--hold", "--name", "later", "--", "sh", "-c", "echo done >out")
    job = result.stdout.decode().strip()

    assert result.stderr.decode() == (
        f"jpsi: jpsi submits it to local once it is released: jpsi release {job}\n"
    )
    assert f"it is held, and not submitted yet: jpsi release {job}" in run("explain", "later").stdout.decode()
    assert not (tmp_path / "out").exists()
    assert run("release", "later").returncode == 0
    assert run("wait", "later").returncode == 0
    assert (tmp_path / "out").read_text() == "done\n"


def test_a_held_job_is_waited_for_in_words_and_cancelled_at_once(run: Run) -> None:
    job = run("submit", "--hold", "--array", "1-3%1", "--", "true").stdout.decode().strip()
    ids = run("ls", "--ids", "--members").stdout.decode().split()

    waited = run("wait", "--timeout", "0", ids[0])
    cancelled = run("cancel", "--json", job)

    assert waited.returncode == 124
    assert waited.stderr.startswith(f"jpsi: job {ids[0]} is held: jpsi release {ids[0]}\n".encode())
    found = [json.loads(line)["state"] for line in cancelled.stdout.splitlines()]
    assert (cancelled.returncode, found) == (0, ["CANCELED"] * 3)


def test_only_a_command_that_starts_jobs_runs_on(run: Run) -> None:
    held = run("submit", "--hold", "--array", "1-3%1", "--", "true")

    assert held.stderr.decode() == (
        f"jpsi: jpsi submits it to local once it is released: jpsi release {held.stdout.decode().strip()}\n"
    )
    assert run("release", held.stdout.decode().strip()).returncode == 0
    assert run("wait", held.stdout.decode().strip()).returncode == 0


def test_a_deferred_job_knows_all_its_dependencies_by_the_ids_of_jpsi(slurm: Run) -> None:
    first = printed(slurm("submit", "--", "true"))
    local = slurm("submit", "-x", "local", "--hold", "--", "true").stdout.decode().strip()
    second = slurm("submit", "--after", f"{first},{local}", "--", "true").stdout.decode().strip()

    shown = slurm("show", "--json", second).stdout.decode()
    slurm("cancel", second, local, first)
    assert re.findall(r'"job": "(.*)"', shown) == [first, local]


def test_a_held_array_is_released_by_its_own_id(run: Run) -> None:
    array = run("submit", "--hold", "--array", "1-4", "--", "true").stdout.decode().strip()
    hint = f"it is held, and not submitted yet: jpsi release {array}"

    assert hint in run("ls").stdout.decode()
    assert hint in run("explain", array).stdout.decode()
    waited = run("wait", "--timeout", "0", array).stderr.decode()
    assert waited.startswith(f"jpsi: 4 jobs of the array {array} are held: jpsi release {array}\n")


def test_a_held_array_of_a_batch_system_is_released_by_its_own_id(slurm: Run) -> None:
    array = printed(slurm("submit", "--hold", "--array", "1-4", "--", "true"))

    assert f"jpsi release {array}\n" in slurm("explain", array).stdout.decode()


def test_a_job_that_starts_by_its_release_was_released(slurm: Run, fake: FakeScheduler) -> None:
    job = printed(slurm("submit", "--hold", "--", "sleep", "100"))
    free_slots(fake)

    released, again = slurm("release", job), slurm("release", job)
    slurm("cancel", job)

    assert (released.returncode, released.stderr) == (0, b"")
    assert b"runs already; there is nothing to release" in again.stderr


def test_a_release_after_which_nothing_is_held_has_worked(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    job = printed(run("submit", "-x", "local", "--", "sh", "-c", ">begun; exec sleep 100"))
    (tmp_path / "begun").read_text()

    released = run("release", job)
    run("cancel", job)

    assert released.returncode == 0
    assert released.stderr.decode() == f"jpsi: job {job} runs already; there is nothing to release\n"


def test_a_hold_of_an_array_that_runs_in_part_says_what_was_held(slurm: Run, fake: FakeScheduler) -> None:
    fake.slots = 8
    array = printed(slurm("submit", "--array", "1-6%2", "--", "sleep", "100"))

    held = slurm("hold", array)
    slurm("cancel", array)

    assert held.returncode == 125
    assert held.stderr.decode().splitlines()[2:] == ["jpsi: 4 of the 6 jobs were held all the same"]


def test_a_job_that_starts_before_its_hold_arrives_is_not_counted_as_held(
    slurm: Run, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = printed(slurm("submit", "--array", "1-3", "--", "sleep", "100"))
    hold = fake.hold

    def start_first(native_id: str) -> bool:
        with fake.lock:
            for other in {it.native_id for it in fake.listed()} - {native_id}:
                hold(other)
            fake.slots = 1
            fake.settle()
        return hold(native_id)

    monkeypatch.setattr(fake, "hold", start_first)
    held = slurm("hold", array)
    states_then = Counter(it.state for it in fake.listed())
    slurm("cancel", array)

    assert held.returncode == 125
    running, *others = held.stderr.decode().splitlines()
    assert running.endswith(" runs: it started before the hold")
    assert others == ["jpsi: 2 of the 3 jobs were held all the same"]
    assert states_then == {FakeState.RUNNING: 1, FakeState.HELD: 2}


def test_a_part_of_an_array_that_was_not_submitted_is_repeated_alone(
    slurm: Run,
    fake: FakeScheduler,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commands that `jpsi explain` and `resubmit --failed` print touch none of those that completed."""
    config = "{config: {array_size: 3, submit_concurrency: 1}}"
    file = Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml")
    file.write_text(f"default_executor: slurm\nexecutors: {{slurm: {config}}}\n")
    find_fault, calls = fake.faults.next_fault, list[str]()

    def next_fault(command: str) -> Any:
        calls.append(command)
        if calls.count("sbatch") == 2:
            fake.faults.cut("sbatch")
            fake.faults.down()
        return find_fault(command)

    script = ("sh", "-c", "echo $JPSI_ARRAY_INDEX >>ran")
    with monkeypatch.context() as patch:
        patch.setattr(fake.faults, "next_fault", next_fault)
        submitted = slurm("submit", "--name", "half", "--array", "1-6", "--", *script)
    fake.faults.clear()
    free_slots(fake)
    assert submitted.returncode == 125
    array = json.loads(slurm("ls", "--json").stdout)[0]["array_id"]
    assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs))
    slurm("ls", "--refresh")

    advice = next(
        it for it in slurm("explain", "half").stdout.decode().splitlines() if it.startswith("  - end it, so")
    )
    left_out = slurm("resubmit", "--failed", "half").stderr.decode()

    part = f"'{array}[4-6]'"
    assert advice.endswith(f"jpsi cancel {part}; then submit it again: jpsi resubmit {part}")
    assert left_out.splitlines()[0] == (
        "jpsi: 3 jobs were never submitted, and left out: the program that was to submit them may still do "
        f"so; end them first: jpsi cancel {part}"
    )
    assert slurm("cancel", part.strip("'")).returncode == 0
    again = printed(slurm("resubmit", "--failed", "half"))
    assert slurm("wait", again).returncode == 0
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "2", "3", "4", "5", "6"]


def test_the_advice_on_jobs_without_indices_that_form_an_array_can_be_typed(
    slurm: Run, fake: FakeScheduler, tmp_path: Path
) -> None:
    spec = jpsi.JobSpec("true", name="few", directory=tmp_path)
    document = json.dumps(json.loads(jpsi.write_document(spec, as_json=True)))
    printed(slurm("submit", "--many", "-", input=f"{document}\n{document}\n".encode()))
    for it in fake.jobs:
        fake.end_as(it.native_id, FakeState.TIMEOUT)
    slurm("wait", "few")

    advice = slurm("explain", "few").stdout.decode()

    (array,) = {it["array_id"] for it in json.loads(slurm("ls", "--json").stdout)}
    assert f"jpsi resubmit --time TIME --failed {array}; or have it" in advice


def test_the_last_lines_of_jobs_without_indices_that_form_an_array_can_be_shown(
    slurm: Run, fake: FakeScheduler, tmp_path: Path
) -> None:
    script = "echo error $0 >&2; exit 1"
    specs = [jpsi.JobSpec("sh", ["-c", script, number], directory=tmp_path) for number in "123"]
    document = "".join(f"{json.dumps(json.loads(jpsi.write_document(it, as_json=True)))}\n" for it in specs)
    printed(slurm("submit", "--many", "-", input=document.encode()))
    free_slots(fake)
    ids = printed(slurm("ls", "--ids", "--members")).split()
    assert slurm("wait", *ids).returncode == 1
    jobs = json.loads(slurm("ls", "--json").stdout)
    assert len({it["array_id"] for it in jobs} - {None}) == 1

    advice = slurm("explain", jobs[0]["array_id"]).stdout.decode()

    command = next(it for it in advice.splitlines() if "the last lines of the others may differ" in it)
    shown = slurm(*command.partition("jpsi ")[2].split())
    assert (shown.returncode, len(re.findall("^error [123]$", shown.stdout.decode(), re.MULTILINE))) == (0, 2)


def test_an_array_of_one_is_a_job(slurm: Run, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH --array=1 --time=10\ntrue\n")
    (tmp_path / "job.yaml").write_text(printed(slurm("convert", "job.sh")))

    script = slurm("script", "-f", "job.yaml")
    printed(slurm("submit", "-f", "job.yaml"))

    assert (script.returncode, script.stderr) == (0, b"")
    line = slurm("ls").stdout.decode().splitlines()[1]
    assert "1 QUEUED" not in line
    assert " QUEUED " in line


def test_a_reason_that_holds_for_all_elements_names_no_places(slurm: Run) -> None:
    result = slurm("submit", "--array", "1-8", "--attribute", "slurm.nosuch=1", "--", "true")

    assert result.returncode == 2
    first, reason = result.stderr.decode().splitlines()[:2]
    assert first == "jpsi: 8 of 8 jobs can never run as they are; none was submitted:"
    assert not reason.startswith("  - -")
    assert ";" not in reason


def test_a_job_is_followed_by_a_name_that_could_be_a_native_id(slurm: Run, fake: FakeScheduler) -> None:
    slurm("submit", "--name", "7", "--", "sh", "-c", "exit 3")
    free_slots(fake)

    done = slurm("attach", "-x", "slurm", "7")

    assert done.returncode == 3, done.stderr
