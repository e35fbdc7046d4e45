"""The runner of an array's elements: each does what it would by itself, and none of a revoked array runs."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.contract.hookspecs import Arrays
from jpsi.contract.shell import ShellLine
from jpsi.model.spec import JobSpec, StageIn, StageOut
from jpsi_engine.runner import staging
from jpsi_engine.runner.arrays import (
    ARGUMENTS,
    INDEX,
    JOB_ID,
    ElementForm,
    ElementFrame,
    element_blocks,
    element_text,
    render_array_runner,
)
from jpsi_engine.runner.requeue import RequeueRules
from jpsi_engine.runner.script_input import Run
from jpsi_engine.spool.arrays import BLOCK, ArrayMember, read_link
from jpsi_engine.spool.claims import REVOKED, read_claim, revoke
from jpsi_engine.spool.layout import Layout
from jpsi_engine.spool.spool import Spool
from jpsi_testing import specs
from runners import PATH, SINGLE, shell_job, with_control_groups, without_usage

ARRAYS = Arrays(largest=1000, id_variable="OTHER ARRAY_ID", index_variable="INDEX")
NATIVE = "17[].server"


@attrs.frozen
class Elements:
    """An array on disk, and the shell that runs its elements."""

    spool: Spool
    shell: str
    arrays: Arrays = ARRAYS

    @property
    def run_file(self) -> str:
        return f"{self.spool.arrays.folder('x')}/run"

    def write(self, specs: Sequence[JobSpec], **fields: object) -> None:
        self.spool.open()
        given = {"launch": SINGLE, "attempt": 1, "directory": self.spool.root, **fields}
        runs = [
            Run(
                job_id=f"job-{index}",
                folder=self.spool.folder(f"job-{index}"),
                events=self.spool.events,
                spec=spec,
                frame=ElementFrame("", common=self.run_file, index=index),
                **(given | {"directory": str(spec.directory or given["directory"])}),  # type: ignore[arg-type]  # fields of Run
            )
            for index, spec in enumerate(specs, 1)
        ]
        layout, functions = Layout(self.spool.root), staging.functions(runs)
        common = render_array_runner("x", layout, self.arrays, RequeueRules(), functions)
        elements = [{"id": run.job_id, "attempt": 1, "spec": {}} for run in runs]
        blocks = list(element_blocks(map(element_text, runs)))
        os.close(self.spool.arrays.prepare("x", {"spec": {}}, elements, common, blocks))

    def start(self, index: int, native_id: str = NATIVE, **variables: str) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": PATH,
            "ARRAY_ID": native_id,
            "INDEX": str(index),
            **variables,
        }
        return subprocess.Popen([self.shell, self.run_file], env=environment, stdin=subprocess.DEVNULL)

    def run(self, index: int, native_id: str = NATIVE, **variables: str) -> int:
        return self.start(index, native_id, **variables).wait(60)

    def left(self) -> set[str]:
        """Return the markers, except for those that an element has started."""
        return {without_usage(it.name) for it in Path(self.spool.events).iterdir() if it.suffix != ".active"}

    def output(self, index: int) -> str:
        return Path(self.spool.folder(f"job-{index}"), "stdout").read_text()


@pytest.fixture
def elements(tmp_path: Path, shell: str) -> Elements:
    return Elements(Spool(tmp_path / "a b" / "spool"), shell)


def test_each_element_runs_its_own_command_with_its_own_environment(elements: Elements) -> None:
    count = 2 * BLOCK + 1
    elements.write(
        [
            shell_job('echo "$WHO $JPSI_JOB_ID"; exit $WHO', environment={"WHO": str(it)})
            for it in range(count)
        ]
    )

    for index in (1, BLOCK, BLOCK + 1, count):
        assert elements.run(index) == index - 1
        assert elements.output(index) == f"{index - 1} job-{index}\n"
        assert f"job-{index}.1.exit.run.{index - 1}" in elements.left()
        assert read_link(elements.spool.folder(f"job-{index}"), 1) == ArrayMember("x", index)


def test_elements_may_differ_in_anything_that_a_spec_has(elements: Elements, tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text("export HOOK=here\n")
    elements.write(
        [
            JobSpec("pwd", directory=tmp_path),
            shell_job("env", environment={"ONLY": "one"}, inherit_environment=False),
            shell_job('echo "$HOOK"; exit 3', pre_launch=hook),
            shell_job("cat; exit 4", stdin_path=hook, stdout_path=tmp_path / "out"),
            JobSpec("no-such-program"),
        ]
    )

    assert [elements.run(index) for index in range(1, 6)] == [0, 0, 3, 4, 127]
    assert elements.output(3) == "here\n"
    assert (tmp_path / "out").read_text() == "export HOOK=here\n"
    assert "ONLY=one" in elements.output(2)
    assert "ARRAY_ID" not in elements.output(2)
    assert "job-5.1.exit.executable.127" in elements.left()


def test_elements_that_start_together_make_one_claim(elements: Elements) -> None:
    elements.write([shell_job("exit 7")] * 12)

    started = [elements.start(index) for index in range(1, 13)]

    assert [process.wait(60) for process in started] == [7] * 12
    claim = elements.spool.arrays.claim("x")
    assert claim is not None
    assert claim.text == NATIVE
    assert list(Path(elements.run_file).parent.glob("claim.*")) == []


def test_an_array_is_revoked_or_runs_whole(elements: Elements) -> None:
    """All elements agree with the winner."""
    elements.write([shell_job("exit 7")] * 8)
    start = threading.Barrier(2)
    is_revoked = []

    def revoking() -> None:
        start.wait(60)
        is_revoked.append(elements.spool.arrays.revoke("x"))

    thread = threading.Thread(target=revoking)
    thread.start()
    start.wait(60)
    codes = {elements.run(index) for index in range(1, 9)}
    thread.join()

    assert codes == ({125} if is_revoked == [True] else {7})
    claim = elements.spool.arrays.claim("x")
    assert claim is not None
    assert claim.text == (REVOKED if is_revoked == [True] else NATIVE)


def test_no_element_of_a_revoked_array_leaves_anything(elements: Elements) -> None:
    elements.write([shell_job("exit 7")])
    assert revoke(f"{elements.spool.arrays.folder('x')}/claim")

    assert elements.run(1) == 125
    assert elements.left() == set()
    assert list(Path(elements.spool.jobs).iterdir()) == []


def test_elements_of_another_submission_of_the_array_do_not_run(elements: Elements) -> None:
    elements.write([shell_job("exit 7")] * 2)
    assert elements.run(1) == 7

    assert elements.run(2, native_id="18[].server") == 125
    assert elements.run(2) == 7


def test_elements_with_own_ids_claim_the_common_part(elements: Elements) -> None:
    elements = attrs.evolve(elements, arrays=attrs.evolve(ARRAYS, id_brackets="[]"))
    elements.write([shell_job("exit 7")] * 3)

    codes = [elements.run(index, f"{array}[{index}].server") for index, array in enumerate((17, 17, 18), 1)]

    assert codes == [7, 7, 125]
    claim = elements.spool.arrays.claim("x")
    assert claim is not None
    assert claim.text == "17[].server"


def test_an_element_has_a_control_group_of_its_own(elements: Elements, tmp_path: Path) -> None:
    """The claim has the part of the id that elements share, and the group the whole id."""
    elements = attrs.evolve(elements, arrays=attrs.evolve(ARRAYS, id_brackets="[]"))
    elements.write([shell_job("kill -9 $$")] * 2)
    files = {"jobs/17[2].server/memory.events": "oom_kill 1\n"}
    with_control_groups(Path(elements.run_file), tmp_path, "0::/jobs/17[2].server\n", files)

    assert [elements.run(index, f"17[{index}].server") for index in (1, 2)] == [137, 137]

    assert elements.left() == {"job-1.1.exit.run.137", "job-2.1.exit.run-oom.137"}


def test_an_element_that_is_run_again_counts_its_runs(elements: Elements) -> None:
    elements.write([shell_job("exit 137")])

    assert [elements.run(1), elements.run(1)] == [137, 137]

    assert elements.left() == {"job-1.1.exit.run.137", "job-1.1.1.exit.run.137"}


@pytest.mark.parametrize("index", ["", "x", "-1", "1 2", "65"])
def test_an_unknown_element_runs_nothing(elements: Elements, index: str) -> None:
    elements.write([shell_job("exit 7")])

    assert elements.run(1, INDEX=index) == 125
    assert elements.left() == set()


def test_without_the_id_of_its_array_no_element_runs(elements: Elements) -> None:
    elements.write([shell_job("exit 7")])

    assert elements.run(1, ARRAY_ID="") == 125
    assert read_claim(f"{elements.spool.arrays.folder('x')}/claim") is None


def test_a_launcher_starts_processes_of_the_same_element(elements: Elements) -> None:
    """This case has processes of an element with their own environment, from the runner's file."""
    text = 'echo "$RANK $WHO ${INDEX-unset}"'
    elements.write(
        [shell_job(text, environment={"WHO": str(it)}, inherit_environment=False) for it in range(2)],
        launch=[ShellLine("unset INDEX ARRAY_ID"), ShellLine('RANK=5 "$@"')],
        rank_variables=["RANK"],
    )

    assert elements.run(2) == 0
    assert elements.output(2) == "5 1 unset\n"


def test_each_element_stages_its_own_files(elements: Elements, tmp_path: Path) -> None:
    """Functions are in the common part, once."""
    (tmp_path / "in").write_text("in\n")
    elements.write(
        [
            shell_job(
                "cat a >b",
                directory=tmp_path / str(index),
                create_directory=True,
                stage_in=[StageIn(str(tmp_path / "in"), Path("a"))],
                stage_out=[StageOut(Path("b"), str(tmp_path / f"out {index}"))],
            )
            for index in (1, 2)
        ]
        + [shell_job("exit 3"), JobSpec("true", stage_in=[StageIn("/no/such/file", Path("a"))])],
    )

    assert [elements.run(index) for index in range(1, 5)] == [0, 0, 3, 125]
    assert [(tmp_path / f"out {index}").read_text() for index in (1, 2)] == ["in\n"] * 2
    assert "job-4.1.exit.stage_in.125" in elements.left()
    texts = [path.read_text() for path in Path(elements.run_file).parent.iterdir()]
    assert sum(text.count("_jpsi_stage() {") for text in texts) == 1


@given(spec=specs(), starts_processes=st.booleans())
def test_the_lines_of_a_form_are_those_of_the_element(spec: JobSpec, starts_processes: bool) -> None:
    spec.arguments = [text.replace("${", "") for text in spec.arguments or ()]

    def run(job_id: str, index: int | str, arguments: list[str]) -> Run:
        return Run(
            job_id=job_id,
            attempt=2,
            folder=f"/spool/jobs/{job_id}",
            events="/spool/events",
            directory="/work",
            spec=attrs.evolve(spec, arguments=arguments),
            launch=SINGLE,
            rank_variables=["PMI_*"] if starts_processes else [],
            frame=ElementFrame("", common="/spool/arrays/x/run", index=index),
        )

    form = ElementForm(run(JOB_ID, INDEX, [ARGUMENTS]))

    for job_id, index, arguments in [("job-1", 7, spec.arguments), ("job-2", 8, [])]:
        assert form.text(job_id, index, arguments) == element_text(run(job_id, index, arguments))
