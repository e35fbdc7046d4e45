"""The programs in examples/, on this machine and on the fake of Slurm."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import runpy
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import jpsi
from jpsi_testing.fake import FakeScheduler, FakeState

EXAMPLES = Path(__file__).parents[3] / "examples"
PATIENCE = 60


def load(name: str) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py")))


@pytest.fixture(params=["local", "slurm"])
def name(request: pytest.FixtureRequest, fake_commands: Callable[..., FakeScheduler]) -> str:
    """Return the name of an executor, which the test can request as a fixture."""
    fake_commands("slurm")
    return str(request.param)


@pytest.fixture
def slurm(fake_commands: Callable[..., FakeScheduler]) -> FakeScheduler:
    return fake_commands("slurm")


def test_sweep(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load("sweep").main(name)

    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "width,rate,result"
    assert len(rows) == 6
    assert rows[0] == "1,0.5,0.25"


def test_throttle(slurm: FakeScheduler, capsys: pytest.CaptureFixture[str]) -> None:
    load("throttle").main(40, 4)

    assert capsys.readouterr().out == "{'COMPLETED': 36, 'FAILED': 4}\n"


def test_chain(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load("chain").main(name)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prepare COMPLETED 1 2 3"
    assert sorted(lines[1:4]) == [f"simulate-{n} COMPLETED {n * n}" for n in (1, 2, 3)]
    assert lines[4:] == ["summary COMPLETED 14"]


def test_gpu(slurm: FakeScheduler, capsys: pytest.CaptureFixture[str]) -> None:
    load("gpu").main("local")

    assert capsys.readouterr().out.startswith("COMPLETED, exit code 0\nGPUs: ")


def test_gpus_are_requested(slurm: FakeScheduler) -> None:
    script = jpsi.JobExecutor("slurm").preview(jpsi.Job(load("gpu").spec())).script

    assert script is not None
    assert {"#SBATCH --gpus-per-task=2", "#SBATCH --cpus-per-task=8", "#SBATCH --constraint=a100"} <= {
        *script.splitlines()
    }


def test_a_submission_that_fails_for_a_while_is_tried_again(slurm: FakeScheduler) -> None:
    for _ in range(2):
        slurm.faults.fail("sbatch", stderr="sbatch: error: Unable to contact slurm controller\n")
    waited: list[float] = []
    job = jpsi.Job(jpsi.JobSpec("/bin/true"))
    load("retry").submit(jpsi.JobExecutor("slurm"), job, sleep=waited.append)

    assert len(waited) == 2
    assert job.wait(PATIENCE) is not None


def test_a_job_that_lacks_time_gets_twice_as_much(slurm: FakeScheduler, tmp_path: Path) -> None:
    executor, enough = jpsi.JobExecutor("slurm"), tmp_path / "enough"
    spec = jpsi.JobSpec(
        "/bin/sh",
        ["-c", 'test -e "$1" || exec sleep 1000', "sh", str(enough)],
        resources=jpsi.ResourceSpecV1(memory=2**30),
        attributes=jpsi.JobAttributes(duration=timedelta(minutes=10)),
    )

    def submit(job: jpsi.Job) -> None:
        if not slurm.jobs:
            executor.submit(job)
            assert slurm.end_as(job.native_id or "", FakeState.TIMEOUT)
        else:
            enough.touch()
            executor.submit(job)

    status = load("retry").run(SimpleNamespace(submit=submit), spec)

    assert status.state is jpsi.JobState.COMPLETED
    assert spec.attributes is not None
    assert spec.attributes.duration == timedelta(minutes=20)


WRONG = {
    "chain": ("a", "b"),
    "gpu": ("a", "b"),
    "mpi": ("slurm",),
    "remote": ("a", "b", "c"),
    "retry": ("slurm",),
    "service": ("a", "b"),
    "sweep": ("a", "b"),
    "throttle": ("slurm",),
}


@pytest.mark.parametrize("example", WRONG)
def test_a_wrong_argument_is_answered_with_a_sentence_of_usage(
    example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{example}.py", *WRONG[example]])

    with pytest.raises(SystemExit, match=rf"^usage: python {example}\.py [^\n]*$"):
        runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")


@pytest.mark.parametrize("example", sorted(WRONG.keys() - {"throttle"}))
def test_an_executor_that_does_not_exist_is_named(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"mpi": ("srun", "true"), "retry": ("true",)}.get(example, ())
    monkeypatch.setattr(sys, "argv", [f"{example}.py", "nosuch", *arguments])

    with pytest.raises(SystemExit, match=r"^no executor 'nosuch'; installed: "):
        runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")


def test_notebook(slurm: FakeScheduler) -> None:
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    names: dict[str, object] = {}

    with contextlib.redirect_stderr(io.StringIO()):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)

    assert names["results"] == [n * n for n in range(10)]


@pytest.fixture
def service(name: str) -> Iterator[Callable[[bytes], list[dict[str, object]]]]:
    """Return a function that sends text to the service and returns its responses."""

    def send(text: bytes) -> list[dict[str, object]]:
        return asyncio.run(asyncio.wait_for(talk(text), PATIENCE))

    async def talk(text: bytes) -> list[dict[str, object]]:
        answer = load("service").Service(jpsi.JobExecutor(name)).answer
        async with await asyncio.start_server(answer, "localhost", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            writer.write(text)
            writer.write_eof()
            received = await reader.read()
            writer.close()
            return [json.loads(line) for line in received.splitlines()]

    return send


def test_service(service: Callable[[bytes], list[dict[str, object]]]) -> None:
    responses = service(b'["/bin/echo", "hello"]\n["/bin/sh", "-c", "exit 3"]\nnonsense\n')

    states = [it.get("state") for it in responses]
    assert states == ["QUEUED", "ACTIVE", "COMPLETED", "QUEUED", "ACTIVE", "FAILED", None]
    assert (responses[2]["output"], responses[5]["exit_code"]) == ("hello\n", 3)
    assert "error" in responses[6]
