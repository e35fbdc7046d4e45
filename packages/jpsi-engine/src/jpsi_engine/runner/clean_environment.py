"""Renders the lines that give the processes of a job that inherits nothing their environment.

`script` uses them if a launcher starts the processes. The variables that it sets for a process are known only
where the process starts, and those that pre_launch exported only where pre_launch ran. So the launcher starts
each process through the runner's own file, as `run.N --process=,A,B, COMMAND`: N is the attempt, and A and B
are the variables that pre_launch exported. The file then runs COMMAND by `env -i`, with the variables of the
spec, A and B, and those that the launcher has set, and with no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jpsi_engine.verdict import ENVIRONMENT, SETUP_CODE

# The option with which a launcher has the runner's file start one process; its value is the exported names,
# each between commas, e.g. `--process=,A,B,`. It is never an empty word, as some launchers drop those.
_PROCESS_OPTION = "--process="

# The output of env(1) does not show where a value of several lines ends; awk(1) lists the names alone.
_NAMES = """\
# Prints the names of all variables of the environment, whatever their values contain.
_jpsi_names() {
  PATH=${PATH-}:/usr/bin:/bin LC_ALL=C command awk \\
    'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z_0-9]*$/) print name }'
}"""

_PROCESS = """\
# The launcher starts each process of the job through this file. Its environment has the variables of the
# spec, those that pre_launch exported, whose names are in the option, and those that the launcher sets.
case ${{1-}} in
{option}*)
  unset -f command
  _jpsi_exported=${{1#{option}}}
  shift
  _jpsi_found=$(_jpsi_names) || exit {code}
  unset IFS
  for _jpsi_name in $_jpsi_found; do
    case $_jpsi_name in
{kept}    {patterns}) ;;
    *) case $_jpsi_exported in *",$_jpsi_name,"*) ;; *) continue ;; esac ;;
    esac
    eval "set -- \\${{$_jpsi_name+\\"$_jpsi_name=\\$$_jpsi_name\\"}} \\"\\$@\\""
  done
{lines}  exec {environment} "$@"
  ;;
esac"""

_SAVE_ENVIRONMENT = """\
# The variables that pre_launch exports are those that differ after it.
_jpsi_exported=,
_jpsi_found=$(_jpsi_names) || _jpsi_end {phase} {code}
for _jpsi_name in $_jpsi_found; do
  eval "_jpsi_was_$_jpsi_name=\\${{$_jpsi_name+x\\$$_jpsi_name}}"
done"""

# mawk(1) fails if standard error is closed, as pre_launch may have left it; the run of awk(1) before the
# scripts has reported any other reason to fail.
_FIND_CHANGES = """\
_jpsi_found=$(_jpsi_names 2>/dev/null) || _jpsi_end {phase} {code}
for _jpsi_name in $_jpsi_found; do
  case $_jpsi_name in _ | PWD | OLDPWD | SHLVL | _jpsi_*) continue ;; esac
  eval "_jpsi_was=\\${{_jpsi_was_$_jpsi_name-}} _jpsi_is=\\${{$_jpsi_name+x\\$$_jpsi_name}}"
  [ -z "$_jpsi_is" ] || [ "$_jpsi_is" = "$_jpsi_was" ] && continue
  _jpsi_exported=$_jpsi_exported$_jpsi_name,
  eval "_jpsi_new_$_jpsi_name=\\$$_jpsi_name"
done"""


def start_process(
    env_command: Sequence[str],
    rank_variables: Sequence[str],
    lines: Iterable[str] = (),
    *,
    kept_variables: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines at the beginning of the runner's file that start a single process.

    Args:
        env_command: the words of the command env(1) with the variables that each process gets.
        rank_variables: patterns of the names of the variables that the launcher sets.
        lines: further changes to the command of the process, in "$@".
        kept_variables: names of variables that the process gets from `env_command` in any case.
    """
    yield _NAMES
    yield _PROCESS.format(
        option=_PROCESS_OPTION,
        code=SETUP_CODE,
        # the empty name, which no variable has, if there is no pattern
        patterns=" | ".join(rank_variables) or "''",
        kept=f"    {' | '.join(kept_variables)}) continue ;;\n" if kept_variables else "",
        lines="".join(f"  {it}\n" for it in lines),
        environment=" ".join(env_command),
    )


def process_prefix(runner: Sequence[str], *, has_scripts: bool) -> list[str]:
    """Return the words that go before the command of a process, so that it starts through the runner's file.

    Args:
        runner: the words of shell that run the runner's file once more.
        has_scripts: True if scripts may have exported variables; the other functions of this module find
            them.
    """
    option = f'"{_PROCESS_OPTION}$_jpsi_exported"' if has_scripts else _PROCESS_OPTION
    return [*runner, option]


def save_environment() -> Iterator[str]:
    """Yield the lines that remember the environment before the scripts run."""
    yield _SAVE_ENVIRONMENT.format(phase=ENVIRONMENT, code=SETUP_CODE)


def find_changes() -> Iterator[str]:
    """Yield the lines that find the changes: names in `_jpsi_exported`, values in `_jpsi_new_NAME`."""
    yield _FIND_CHANGES.format(phase=ENVIRONMENT, code=SETUP_CODE)
