"""The launcher `script`: runs the launcher script of PSI/J that the custom attribute `script.path` names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jpsi.plugin import JobSpec, ScriptLauncher, ShellLine, custom_options, hookimpl

from . import aprun, flux, jsrun, mpi, multiple, srun

_SYSTEM = "script"
_PATH = "path"
# What such a script uses to start processes, nobody knows.
_ANY = (mpi, aprun, flux, jsrun, multiple, srun)


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    path = custom_options(spec, _SYSTEM).get(_PATH)
    if not isinstance(path, str | Path) or not Path(path).is_absolute():
        wanted = f"the custom attribute {_SYSTEM}.{_PATH}, the absolute path of such a script"
        return [f"the launcher script runs a launcher script of PSI/J and needs {wanted}, not {path!r}"]
    return list(ScriptLauncher(path).check_spec(spec))


@hookimpl
def rank_variables() -> Sequence[str]:
    return tuple(dict.fromkeys(name for module in _ANY for name in module.rank_variables()))


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    return ScriptLauncher(custom_options(spec, _SYSTEM)[_PATH]).launch()


@hookimpl
def sources_scripts() -> bool:
    return True
