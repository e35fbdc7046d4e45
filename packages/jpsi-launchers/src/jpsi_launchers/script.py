"""The launcher `script`: runs the launcher script of PSI/J that the custom attribute `script.path` names.

Scripts that start several processes take their number before the command: `script.takes_count`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jpsi.plugin import JobSpec, ShellLine, custom_options, hookimpl

from . import aprun, flux, jsrun, mpi, multiple, srun
from .script_launcher import ScriptLauncher

_SYSTEM = "script"
_PATH = "path"
_COUNT = "takes_count"
# A script may use any launcher to start processes.
_ANY = (mpi, aprun, flux, jsrun, multiple, srun)


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    """Return the problems with the custom attributes that name the script, and with the job."""
    options = custom_options(spec, _SYSTEM)
    path, count = options.get(_PATH), options.get(_COUNT, False)
    if not isinstance(path, str | Path) or not Path(path).is_absolute():
        requirement = f"the custom attribute {_SYSTEM}.{_PATH}, the absolute path of such a script"
        return [f"the launcher script runs a launcher script of PSI/J and needs {requirement}, not {path!r}"]
    problems = list(ScriptLauncher(path).check_spec(spec))
    if not isinstance(count, bool):
        problems.append(f"the custom attribute {_SYSTEM}.{_COUNT} is True or False, not {count!r}")
    return problems


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables of all launchers, since the script may use any of them."""
    return tuple(dict.fromkeys(name for module in _ANY for name in module.rank_variables()))


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that run the job's processes with the script."""
    options = custom_options(spec, _SYSTEM)
    return ScriptLauncher(options[_PATH], takes_count=options.get(_COUNT, False)).launch(spec)


@hookimpl
def sources_scripts() -> bool:
    """Return True: the script itself sources pre_launch and post_launch."""
    return True
