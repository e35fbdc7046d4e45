"""The command `jpsi convert`, with every installed backend."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi_cli.submission.convert import convert

Run = Callable[..., subprocess.CompletedProcess[bytes]]

_SCRIPTS = {
    "slurm": "#SBATCH --job-name=sim --time=30 --ntasks=4",
    "pbs": "#PBS -N sim -l walltime=30:00,select=4",
    "lsf": "#BSUB -J sim -W 30 -n 4",
    "gridengine": "#$ -N sim -l h_rt=1800 -pe orte 4",
    "flux": "# flux: --job-name=sim -t 30m -n 4",
    "oar": "#OAR -n sim\n#OAR -l core=4,walltime=0:30",
}


def _script(folder: Path, directives: str, body: str = "echo sim\n") -> Path:
    path = folder / "job.sh"
    path.write_text(f"#!/bin/bash\n{directives}\n{body}")
    return path


@pytest.mark.parametrize("executor", _SCRIPTS)
def test_a_script_for_any_batch_system_becomes_the_same_job(run: Run, tmp_path: Path, executor: str) -> None:
    path = _script(tmp_path, _SCRIPTS[executor])

    done = run("convert", "job.sh")

    assert done.returncode == 0, done.stderr
    spec = jpsi.read_document(done.stdout.decode())
    assert (spec.name, spec.executable, spec.arguments) == ("sim", "/bin/bash", [str(path)])
    assert spec.attributes is not None
    assert spec.attributes.duration == jpsi.parse_duration("30m")
    assert isinstance(spec.resources, jpsi.ResourceSpecV1)
    assert spec.resources.computed_process_count == 4
    assert spec.launcher == "single"


def test_losses_are_reported_on_standard_error(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, "#SBATCH --wait")

    done = run("convert", "job.sh")

    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == [
        ("jpsi: warning: --wait: sbatch would not return before the job has ended; use Job.wait"),
        (
            "jpsi: warning: the script sets no time limit: jpsi gives the job its own default, "
            "not that of the queue: 0:10:00"
        ),
    ]
    jpsi.read_document(done.stdout.decode())


def test_a_wrong_time_limit_is_named(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, "#SBATCH --time=1:00:00:00")

    assert run("convert", "job.sh").stderr.decode() == (
        "jpsi: warning: the script's time limit may be wrong, as jpsi cannot read it: "
        "'1:00:00:00' is not a time in the format of sbatch\n"
    )


def test_directives_behind_the_first_command_are_named(run: Run, tmp_path: Path) -> None:
    path = _script(tmp_path, "echo\n#SBATCH -J late\n#SBATCH -t 5")

    assert run("convert", "job.sh").stderr.decode() == (
        f"jpsi: {path}: 2 directives, such as '#SBATCH -J late', stand behind the first command, "
        "where slurm reads none; move what you mean above the commands\n"
    )

    _script(tmp_path, "#SBATCH -t 5", "echo\n#SBATCH -J late\n")

    done = run("convert", "job.sh")
    assert (done.returncode, done.stderr.decode()) == (
        0,
        "jpsi: warning: '#SBATCH -J late' stands behind the first command, where slurm reads no directive\n",
    )


def test_the_package_that_reads_a_script_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> jpsi.Conversion:
        msg = "job.sh has no directives of any executor that is installed"
        raise jpsi.InvalidJobException(msg)

    path = _script(tmp_path, "#PBS -l walltime=60")
    monkeypatch.setattr(jpsi, "read_script", refuse)

    with pytest.raises(jpsi.InvalidJobException, match=r"installed$"):
        convert(str(path), [], executor=None, as_json=False)
    missing = [it for it in jpsi.plugins() if it.distribution != "jpsi-pbs"]
    monkeypatch.setattr(jpsi, "plugins", lambda: missing)
    # a here-document of a script for PBS
    path.write_text(f"{path.read_text()}#SBATCH -t 5\n")
    with pytest.raises(jpsi.InvalidJobException, match=r"#PBS are read by the package jpsi-pbs; try: .*pbs$"):
        convert(str(path), [], executor=None, as_json=False)
    with pytest.raises(jpsi.InvalidJobException, match=r"installed$"):
        convert(str(path), [], executor="slurm", as_json=False)


def test_a_script_that_asks_for_what_no_job_can_have_is_named(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, "#SBATCH --nodes=20 --ntasks=2")

    done = run("convert", "job.sh")

    assert (done.returncode, done.stderr) == (
        2,
        b"jpsi: job.sh: resources: 2 processes cannot occupy 20 nodes\n",
    )


def test_json_has_the_document_and_its_losses(run: Run, tmp_path: Path) -> None:
    path = _script(tmp_path, "#SBATCH -t 5 --wait")

    content = json.loads(run("convert", "--json", "job.sh").stdout)

    assert (content["executor"], content["others"]) == ("slurm", [])
    assert content["lost"] == ["--wait: sbatch would not return before the job has ended; use Job.wait"]
    assert content["document"]["tasks"][0]["command"] == ["/bin/bash", str(path)]


def test_the_executor_that_converts_most_is_chosen_and_named(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, "#PBS -l select=2,walltime=60")

    done = run("convert", "job.sh")

    assert done.stderr == (
        b"jpsi: warning: jpsi reads it as a script for openpbs; -x torque reads it differently\n"
    )
    assert b"it is for PBS, and not for Torque" in run("convert", "-x", "torque", "job.sh").stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["job.sh"], 2, b"job.sh has no directives of any executor that is installed\n"),
        (["-x", "slurm", "job.sh"], 2, b"job.sh has no directives of the executor slurm\n"),
        (["-x", "nope", "job.sh"], 2, b"no executor 'nope'"),
        (["missing.sh"], 2, b"jpsi: missing.sh cannot be read: No such file or directory\n"),
        (
            ["win.sh"],
            2,
            b"has Windows line ends, which a shell takes for parts of its words: dos2unix win.sh\n",
        ),
        (["-"], 2, b"jpsi: a script has to be a file, not standard input: the job runs it\n"),
        ([], 2, b"jpsi: missing argument 'SCRIPT'"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(
    run: Run, tmp_path: Path, arguments: list[str], code: int, message: bytes
) -> None:
    _script(tmp_path, "# nothing")
    (tmp_path / "win.sh").write_bytes(b"#!/bin/sh\r\n#SBATCH --time=1\r\necho\r\n")

    done = run("convert", *arguments)

    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_job_runs_the_script_as_it_is(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, "#SBATCH -n 3 -t 5 --export=ALL,WORD=right", 'echo "$WORD in $PWD, $0 $#"\n')
    (tmp_path / "job.json").write_bytes(run("convert", "--json", "job.sh").stdout)
    document = json.loads((tmp_path / "job.json").read_text())["document"]
    (tmp_path / "job.yaml").write_text(json.dumps(document))

    done = run("run", "-x", "local", "-f", "job.yaml")

    assert (done.returncode, done.stdout.decode()) == (
        0,
        f"right in {tmp_path}, {tmp_path / 'job.sh'} 0\n",
    )


def test_what_follows_the_script_is_its_arguments(run: Run, tmp_path: Path) -> None:
    """As with `sbatch job.sh -n 3`, also if it looks like an option of jpsi or a variable."""
    _script(tmp_path, "#SBATCH -t 5", "printf '<%s>' \"$@\"\n")
    arguments = ["5", "two words", "-n", "3", "--json", "--", "-x", "", "${HOME}", "$$", "it's"]
    converted = run("convert", "--", "job.sh", *arguments)
    (tmp_path / "job.yaml").write_bytes(converted.stdout)

    done = run("run", "-x", "local", "-f", "job.yaml")

    assert (converted.returncode, converted.stderr) == (0, b"")
    assert done.stdout.decode() == "".join(f"<{it}>" for it in arguments)


@pytest.mark.parametrize("arguments", [["5", "--json"], ["-x", "slurm"], ["--", "--executor", "slurm"]])
def test_an_option_of_convert_behind_the_script_is_warned_of(
    run: Run, tmp_path: Path, arguments: list[str]
) -> None:
    _script(tmp_path, "#SBATCH -t 5")

    warned, silent = run("convert", "job.sh", *arguments), run("convert", "--", "job.sh", *arguments)

    option = next(it for it in arguments if it in {"--json", "-x", "--executor"})
    assert warned.stderr.decode() == (
        f"jpsi: warning: {option} becomes an argument of the script; if it is for jpsi convert, type it "
        "before the script, else type -- before the script\n"
    )
    assert (silent.returncode, silent.stderr) == (0, b"")
    assert warned.stdout == silent.stdout


def test_options_before_the_script_and_others_behind_it_are_no_mistake(run: Run, tmp_path: Path) -> None:
    _script(tmp_path, "#SBATCH -t 5")

    assert run("convert", "-x", "slurm", "job.sh", "-n", "--json=1").stderr == b""


def test_arguments_beside_a_document_are_answered_with_convert(run: Run) -> None:
    answers = [run(command, "-f", "job.yaml", "--", "5") for command in ("run", "submit")]

    assert [it.returncode for it in answers] == [2, 2]
    assert all(b"; jpsi convert SCRIPT ARGS... writes those of a script" in it.stderr for it in answers)
