"""The examples of the READMEs in Python and in the shell, which can be run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi_testing.fake import on_path
from pages import Reader

ROOT = Path(__file__).parents[3]
END = "executor.submit(job)\nprint(job.wait())\n"


def blocks(readme: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", readme.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("system", ["flux", "gridengine", "lsf", "oar", "pbs", "slurm"])
def test_a_backend_takes_the_program_of_its_readme(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launchers are in another package, and the nodes of a fake are this machine, so the job is not run."""
    (program,) = blocks(ROOT / f"packages/jpsi-{system}/README.md", "python")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    assert program.endswith(END)

    with on_path(system):
        exec(program.removesuffix(END), names)
        job, executor = names["job"], names["executor"]
        assert isinstance(job, jpsi.Job)
        assert isinstance(executor, jpsi.JobExecutor)
        assert job.spec is not None
        job.spec.launcher = "single"
        preview = executor.preview(job)

    assert preview.script


@pytest.mark.parametrize("readme", ["README.md", "packages/jpsi-core/README.md"])
def test_the_program_of_a_readme_succeeds(readme: str, environment: dict[str, str], tmp_path: Path) -> None:
    (program,) = blocks(ROOT / readme, "python")
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        cwd=tmp_path,
        env=environment,
        text=True,
    )

    assert "COMPLETED" in done.stdout


def test_the_command_of_the_readme_succeeds(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    command = shlex.split(blocks(ROOT / "README.md", "sh")[-1])

    done = run(*command[1:])

    assert command[0] == "jpsi"
    assert done.stdout.startswith(b"hello from ")


FILES = {
    "words.txt": "two\nwords\n",
    "job.sh": "#!/bin/sh\n#SBATCH --time=5\ntrue\n",
    "simulate": "#!/bin/sh\necho step 1\n",
    "test_it.py": "def test_it(): ...\n",
    "job.yaml": """\
version: 1
resources: [{type: slot, label: mine, count: 1, with: {type: core, count: 1}}]
tasks: [{command: ["true"], slot: mine, count: {total: 1}}]
attributes: {system: {duration: 60}}
""",
}


@pytest.mark.parametrize(
    "block", blocks(ROOT / "packages/jpsi-cli/README.md", "sh"), ids=["commands", "fake"]
)
def test_the_commands_of_the_readme_of_the_command_line_can_be_typed(block: str, tmp_path: Path) -> None:
    files = "".join(
        f"```{{code-block}} text\n:caption: {name}\n\n{text}```\n"
        for name, text in {**FILES, "block.sh": block}.items()
    )
    typed = "```console\n$ chmod +x simulate job.sh\n$ jpsi fake slurm -- sh -eu block.sh\n...\n```\n"

    Reader(tmp_path).follow(files + typed)


def test_the_readme_names_existing_packages() -> None:
    named = set(re.findall(r"\]\((packages/[\w-]+)/README.md\)", (ROOT / "README.md").read_text()))

    assert named == {f"packages/{path.parent.name}" for path in ROOT.glob("packages/*/pyproject.toml")}
