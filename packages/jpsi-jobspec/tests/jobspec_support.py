"""Support for several test files: the documents under examples, and shortcuts to plans."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from jpsi import JobExecutor
from jpsi_jobspec.commands import WORKFLOW
from jpsi_jobspec.document.loader import load
from jpsi_jobspec.document.model import Document
from jpsi_jobspec.document.problems import Findings, Problem, WorkflowError
from jpsi_jobspec.planning.plan import Entry, Plan
from jpsi_jobspec.planning.planner import make_plan
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.journal import Journal
from jpsi_jobspec.running.driver import Driver

#: Reads the log of fake programs; the fixture `log`.
Log = Callable[[], list[str]]
#: Runs a command of `jpsi workflow`; the fixture `run`.
Run = Callable[..., tuple[int, str, str]]
EXAMPLES = Path(__file__).with_name("examples")
#: Documents that are invalid in their original form: two have malformed YAML, one a wrong reference.
INVALID = {"05-requires", "06-mini-mummi", "16-services"}
VALID = sorted(it.stem for it in EXAMPLES.glob("*.yaml") if it.stem not in INVALID)


def example(name: str) -> str:
    return EXAMPLES.joinpath(f"{name}.yaml").read_text()


def run_workflow(*arguments: str) -> tuple[int, str, str]:
    """Run a command of `jpsi workflow`; return its exit code, output and errors."""
    # click has exit codes of its own unless the command's return value is requested
    result: Result = CliRunner().invoke(WORKFLOW, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.stdout, result.stderr


def loaded(text: str, *, is_strict: bool = False) -> tuple[Document, list[Problem]]:
    findings = Findings("flow.yaml", is_strict)
    return load(text, findings), findings.warnings


def planned(text: str, site: Site | None = None) -> Plan:
    findings = Findings("flow.yaml")
    return make_plan(load(text, findings), Site() if site is None else site, findings)


def entries(plan: Plan) -> dict[str, Entry]:
    return {it.id: it for top in plan.entries for it in top.walk()}


def found(text: str, *, is_strict: bool = False, site: Site | None = None) -> list[Problem]:
    """Return all errors and warnings about a document, in its order."""
    findings = Findings("flow.yaml", is_strict)
    with contextlib.suppress(WorkflowError):
        make_plan(load(text, findings), Site() if site is None else site, findings)
    return sorted([*findings.errors, *findings.warnings], key=lambda it: (it.at.line, it.at.column))


FAKE_PROGRAMS = (
    *("spack", "ior", "kubectl", "compspec", "ml-train", "ml-test", "machine", "munch", "echo"),
    "flux-archive",
)
#: Logs its command as it begins and ends, with the directory, the job and the node.
FAKE_PROGRAM = """\
#!/bin/sh
job=${SLURM_JOB_ID:-${PBS_JOBID:-${LSB_JOBID:-${FLUX_JOB_ID:-${JOB_ID:-${OAR_JOB_ID:-none}}}}}}
what="$JPSI_TASK $JPSI_REPLICA ${0##*/} $* of $job on $(hostname) in $PWD"
printf '%s\\n' "begin $what" >>"$LOG"
printf '%s\\n' "end $what" >>"$LOG"
"""


def fake_programs(path: Path) -> Path:
    """Make a folder with fakes of the examples' programs, and an empty log of them."""
    folder = path / "bin"
    folder.mkdir()
    for name in FAKE_PROGRAMS:
        (folder / name).write_text(FAKE_PROGRAM)
        (folder / name).chmod(0o755)
    (path / "log").touch()
    return folder


#: This machine, and every fake batch system.
SYSTEMS = ("local", "slurm", "pbs", "torque", "lsf", "flux", "gridengine", "oar")


def begin_run(text: str, system: str, path: Path) -> Journal:
    file = path / "flow.yaml"
    file.write_text(text)
    return runs.create_run(str(file), text, Site(target=system, is_one_machine=system == "local"), {})


def drive_run(text: str, system: str, path: Path) -> Journal:
    journal = begin_run(text, system, path)
    Driver(journal, JobExecutor(system), lambda *_: None).run()
    return runs.read_run(journal.path)


def flow(text: str) -> str:
    Path("flow.yaml").write_text(text)
    return "flow.yaml"
