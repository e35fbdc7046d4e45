"""Renders the script that sets up a job's environment: modules, conda, Python, spack, scripts of the user.

The runner sources it after the prologue and before pre_launch. An entry that fails ends it, and the entry is
what the script has written to its log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jpsi.plugin import word
from jpsi_engine.runner.script_input import script_word
from jpsi_engine.verdict import SETUP_CODE


def setup_lines(entries: Sequence[str], log: str) -> Iterator[str]:
    """Yield the lines of the script for valid entries, such as `module:gcc/12`.

    Args:
        entries: the entries, in their order.
        log: the path of the log.
    """
    for entry in entries:
        kind, _, value = entry.partition(":")
        if path := script_path(entry):
            # a missing file would end the shell
            yield f"[ -r {script_word(path)} ] && . {script_word(path)} || {{"
        else:
            yield from _LINES[kind].replace("@VALUE@", word(value)).split("\n")
        yield f"  printf '%s\\n' {word(entry)} >{word(log)}; return {SETUP_CODE}"
        yield "}"


def script_path(entry: str) -> Path | None:
    """Return the script that an entry sources; None if a program makes the environment.

    >>> script_path("venv:~/env")
    PosixPath('~/env/bin/activate')
    """
    kind, _, value = entry.partition(":")
    return {"venv": Path(value, "bin", "activate"), "source": Path(value)}.get(kind)


# Each leaves open what to do if it fails. The function `module` is not in a shell that reads no profile.
_LINES = {
    "module": """\
command -v module >/dev/null || for _jpsi_file in "${LMOD_PKG-}/init/sh" "${MODULESHOME-}/init/sh" \\
  /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh
do
  [ ! -r "$_jpsi_file" ] || { . "$_jpsi_file"; break; }
done
module load @VALUE@ || {""",
    "conda": """\
_jpsi_lines=$("${CONDA_EXE:-conda}" shell.posix activate @VALUE@) && eval "$_jpsi_lines" || {""",
    "spack": """\
_jpsi_lines=$("${SPACK_ROOT:+$SPACK_ROOT/bin/}spack" load --sh @VALUE@) && eval "$_jpsi_lines" || {""",
}
