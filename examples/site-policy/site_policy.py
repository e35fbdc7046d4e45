"""The rules of a site for Slurm: which account pays, which jobs are refused, and how jobs have ended."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import attrs

from jpsi import JobStatus
from jpsi.plugin import Directive, JobAttributes, JobSpec, Script, hookimpl

#: The account that pays for each project.
ACCOUNTS = {"climate": "proj1", "ocean": "proj1", "proteins": "proj2"}
#: Gets a line for every job that has ended: its project and its final state.
ENDED = Path("~/.local/state/site-policy/ended")


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    project = _project(spec)
    if project in ACCOUNTS:
        return []
    mistake = "this job names none" if project is None else f"there is no {project!r}"
    return [f"jobs need a project here, and {mistake}: set project_name to one of {', '.join(ACCOUNTS)}"]


@hookimpl(wrapper=True)
def render_script(spec: JobSpec) -> Generator[None, Script, Script]:
    script = yield
    account = ACCOUNTS.get(_project(spec) or "")
    # Jobs that check_spec refuses come by here too, so that one error names all problems.
    return script if account is None else _billed(script, account)


@hookimpl
def status_changed(spec: JobSpec | None, status: JobStatus) -> None:
    if status.final:
        path = ENDED.expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            # One write of one line, so that many processes may do it at a time.
            file.write(f"{'-' if spec is None else _project(spec)} {status.state.value}\n")


def _project(spec: JobSpec) -> str | None:
    return (spec.attributes or JobAttributes()).project_name


def _billed(script: Script, account: str) -> Script:
    """Return the script with this account, for which the backend used the project."""
    others = [it for it in script.directives if not it.text.startswith("#SBATCH --account=")]
    return attrs.evolve(script, directives=[*others, Directive.of("#SBATCH", "--account", account)])
