"""A launcher that is one launcher script of PSI/J, carried out by the runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi.contract.hookspecs import LauncherHooks
from jpsi.layers.layer import find_hook_problems
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import JobSpec
from jpsi_engine.runner.claim_and_markers import BatchFrame, Frame, ProcessFrame
from jpsi_launchers import ScriptLauncher
from runners import Ended, RunnerBench, script, shell_job

#: As PSI/J has it: `set -e`, notes appended to the log, and everything done by the script.
SCRIPT = r"""
set -e
job_id=$1 log=$2 pre=$3 post=$4 in=$5 out=$6 err=$7
shift 7
note() { echo "note: $1" >>"$log"; }
note "launching $job_id"
echo "said"
[ -z "$pre" ] || . "$pre"
set +e
"$@" <"$in" >"$out" 2>"$err"
code=$?
set -e
note "done with $code"
[ -z "$post" ] || . "$post"
echo _PSI_J_LAUNCHER_DONE
exit $code
"""


@pytest.fixture(params=[ProcessFrame(), BatchFrame("JOB_ID")], ids=["process", "batch"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> RunnerBench:
    frame: Frame = request.param
    return RunnerBench(tmp_path / "it's a place", frame=frame)


def run_launcher(
    bench: RunnerBench, spec: JobSpec, text: str = SCRIPT, *, takes_count: bool = False
) -> Ended:
    launcher = ScriptLauncher(script(bench.root / "my launch.sh", text), takes_count=takes_count)
    return bench.run(spec, launch=launcher.launch(spec), sources_scripts=launcher.sources_scripts())


def log(bench: RunnerBench) -> list[str]:
    """Return the output of the script."""
    return (bench.folder / "launch.1").read_text().splitlines()


def notes(bench: RunnerBench) -> list[str]:
    return (bench.folder / "launch.1.notes").read_text().splitlines()


@pytest.mark.clause("python-launcher-own")
def test_the_launcher_implements_existing_hooks() -> None:
    assert find_hook_problems(ScriptLauncher("/x"), [LauncherHooks]) == []


@pytest.mark.clause("python-launcher-arguments")
def test_lines_read_as_they_are_written_here() -> None:
    assert ScriptLauncher("/opt/my launch.sh", interpreter="/bin/sh").launch(JobSpec("x")) == [
        '( umask 077; true >"$_jpsi_log"; true >"$_jpsi_log".notes ) || :',
        'exec /bin/sh \'/opt/my launch.sh\' "$JPSI_JOB_ID" "$_jpsi_log".notes \\',
        '  "$_jpsi_pre_launch" "$_jpsi_post_launch" \\',
        '  "$_jpsi_stdin" "$_jpsi_stdout" "$_jpsi_stderr" \\',
        '  "$@" </dev/null >"$_jpsi_log" 2>&1',
    ]


@pytest.mark.clause("python-launcher-done")
@pytest.mark.parametrize("code", [0, 7, 125])
def test_code_is_that_of_a_script_that_is_done(bench: RunnerBench, code: int) -> None:
    ended = run_launcher(bench, shell_job(f"cat; echo err >&2; exit {code}", stdin_path=Path("/dev/null")))

    assert (ended.code, ended.markers) == (code, [f"exit.run.{code}"])
    assert (ended.stdout, ended.stderr) == (b"", b"err\n")
    assert log(bench) == ["said", "_PSI_J_LAUNCHER_DONE"]
    assert notes(bench) == [f"note: launching {bench.job_id}", f"note: done with {code}"]


def test_late_notes_are_not_in_the_log(bench: RunnerBench) -> None:
    late = 'echo _PSI_J_LAUNCHER_DONE\necho "launched" >>"$2"\nexit 0'

    assert run_launcher(bench, shell_job(":"), late).markers == ["exit.run.0"]
    assert notes(bench) == ["launched"]


def test_script_may_take_the_number_of_processes_before_the_command(bench: RunnerBench) -> None:
    spec = shell_job("exit 9", resources=ResourceSpecV1(process_count=3))
    text = 'shift 7; echo "$1 $2"; shift; "$@"; code=$?; echo _PSI_J_LAUNCHER_DONE; exit $code'

    ended = run_launcher(bench, spec, text, takes_count=True)

    assert ended.markers == ["exit.run.9"]
    assert log(bench)[0].startswith("3 /")


@pytest.mark.clause("python-launcher-streams", "python-launcher-scripts")
def test_script_has_streams_and_scripts_and_sources_them_once(bench: RunnerBench) -> None:
    pre = script(bench.directory / "pre it's", 'echo >>"$PROOF"; export A="pre launch"')
    post = script(bench.home / "post", 'echo >>"$PROOF"; echo "$A $code" >post_proof')
    script(bench.directory / "in", "put in\n")
    spec = shell_job(
        'cat; echo "$A"; echo err >&2; exit 3',
        pre_launch=Path(pre.name),
        post_launch=Path("~/post"),
        stdin_path=Path("in"),
        stdout_path=Path('out "x"'),
        stderr_path=bench.root / "err",
        environment={"PROOF": str(bench.proof)},
    )

    ended = run_launcher(bench, spec)

    assert (ended.code, ended.markers) == (3, ["exit.run.3"])
    assert (bench.directory / 'out "x"').read_text() == "put in\npre launch\n"
    assert (bench.root / "err").read_text() == "err\n"
    assert (bench.directory / "post_proof").read_text() == "pre launch 3\n"
    assert bench.proof.read_text() == "\n\n"
    assert post.exists()


@pytest.mark.clause("python-launcher-done")
@pytest.mark.parametrize(
    ("text", "marker", "expected"),
    [
        ("echo no mpirun; exit 4", "exit.launch.4", ["no mpirun"]),
        ("echo no mpirun", "exit.launch.125", ["no mpirun"]),
        ("exit 0", "exit.launch.125", []),
        ("if", "exit.launch.2", None),
        ("nonexistent-program; exit", "exit.launch.127", None),
        ("echo _PSI_J_LAUNCHER_DONE; echo but; exit 3", "exit.launch.3", ["_PSI_J_LAUNCHER_DONE", "but"]),
        ("echo no >&2; exec >&- 2>&-; kill -KILL $$", "exit.launch.137", ["no"]),
    ],
)
def test_script_that_is_not_done_has_failed(
    bench: RunnerBench, text: str, marker: str, expected: list[str] | None
) -> None:
    ended = run_launcher(bench, shell_job("exit 9"), text)

    assert ended.markers == [marker]
    assert log(bench) == expected if expected is not None else log(bench)


@pytest.mark.parametrize("text", ["exit 3", "false", "return 5"])
def test_pre_launch_that_fails_launches_nothing(bench: RunnerBench, text: str) -> None:
    pre = script(bench.root / "pre.sh", text)

    ended = run_launcher(bench, shell_job('echo >"$1"', bench.proof, pre_launch=pre))

    assert [marker.rpartition(".")[0] for marker in ended.markers] == ["exit.launch"]
    assert not bench.proof.exists()


def test_a_missing_interpreter_is_named(bench: RunnerBench) -> None:
    launcher = ScriptLauncher("/x", interpreter="/nonexistent/bash")

    ended = bench.run(shell_job(":"), launch=launcher.launch(JobSpec("x")), sources_scripts=True)

    assert ended.markers == ["exit.launch.127"]
    assert "/nonexistent/bash" in "".join(log(bench))


def test_streams_that_would_be_one_file_are_refused() -> None:
    launcher = ScriptLauncher("/x")

    assert list(launcher.check_spec(JobSpec("a", stdout_path=Path("o"), stderr_path=Path("o"))))
    assert list(launcher.check_spec(JobSpec("a", stdout_path=Path("o"), stderr_path=Path("e")))) == []
    assert list(launcher.check_spec(JobSpec("a"))) == []


def test_variables_that_it_gives_are_named() -> None:
    assert ScriptLauncher("/x", variables=["PMI_*"]).rank_variables() == ("PMI_*",)
    assert ScriptLauncher("/x").rank_variables() == ()
