"""What gives each process of a job that inherits nothing its environment, when a launcher starts it.

Which variables a launcher gives a process is only known where the process starts, and what pre_launch
exported only where it ran. So the launcher starts each process through the runner's own file, which is told
the names of the latter, and keeps what is to be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jpsi_engine.verdict import ENVIRONMENT, SETUP_CODE

# The option by which a launcher has the runner's file start one process; names follow, each between commas.
# It is never an empty word, as not every launcher passes those on.
_PROCESS_OPTION = "--process="

# Lines of env(1) do not tell where a value ends that has several lines; awk(1) has a name for a name.
_NAMES = """\
# The names of all variables of the environment, whatever stands in their values.
_jpsi_names() {
  PATH=${PATH-}:/usr/bin:/bin LC_ALL=C command awk \\
    'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z_0-9]*$/) print name }'
}"""

_PROCESS = """\
# The launcher starts each process of the job through this file: with the variables of the spec, and of those
# that are there the ones that pre_launch exported, which are named here, and that the launcher gives.
case ${{1-}} in
{option}*)
  unset -f command
  _jpsi_exported=${{1#{option}}}
  shift
  _jpsi_found=$(_jpsi_names) || exit {code}
  unset IFS
  for _jpsi_name in $_jpsi_found; do
    case $_jpsi_name in
    {patterns}) ;;
    *) case $_jpsi_exported in *",$_jpsi_name,"*) ;; *) continue ;; esac ;;
    esac
    eval "set -- \\${{$_jpsi_name+\\"$_jpsi_name=\\$$_jpsi_name\\"}} \\"\\$@\\""
  done
{lines}  exec {environment} "$@"
  ;;
esac"""

_BEFORE = """\
# What pre_launch exports is what is different after it.
_jpsi_exported=,
_jpsi_found=$(_jpsi_names) || _jpsi_end {phase} {code}
for _jpsi_name in $_jpsi_found; do
  eval "_jpsi_was_$_jpsi_name=\\${{$_jpsi_name+x\\$$_jpsi_name}}"
done"""

# mawk(1) fails where standard error is closed, as pre_launch may have left it; what keeps awk(1) from running
# was said before.
_AFTER = """\
_jpsi_found=$(_jpsi_names 2>/dev/null) || _jpsi_end {phase} {code}
for _jpsi_name in $_jpsi_found; do
  case $_jpsi_name in _ | PWD | OLDPWD | SHLVL | _jpsi_*) continue ;; esac
  eval "_jpsi_was=\\${{_jpsi_was_$_jpsi_name-}} _jpsi_is=\\${{$_jpsi_name+x\\$$_jpsi_name}}"
  [ -z "$_jpsi_is" ] || [ "$_jpsi_is" = "$_jpsi_was" ] && continue
  _jpsi_exported=$_jpsi_exported$_jpsi_name,
  eval "_jpsi_new_$_jpsi_name=\\$$_jpsi_name"
done"""


def starting(
    environment: Sequence[str], rank_variables: Sequence[str], lines: Iterable[str] = ()
) -> Iterator[str]:
    """The lines at the beginning of the runner's file by which it starts a process.

    Args:
        environment: the words that run env(1) with the variables that each process gets.
        rank_variables: patterns of the names of those that the launcher gives.
        lines: what is still done to the command of the process, in "$@".
    """
    yield _NAMES
    yield _PROCESS.format(
        option=_PROCESS_OPTION,
        code=SETUP_CODE,
        # of no name, where there is no pattern
        patterns=" | ".join(rank_variables) or "''",
        lines="".join(f"  {it}\n" for it in lines),
        environment=" ".join(environment),
    )


def through(runner: Sequence[str], *, has_scripts: bool) -> list[str]:
    """The words before the command of a process that start it so.

    Args:
        runner: what runs the runner's file once more, as words of shell.
        has_scripts: whether scripts may have exported something, which the other functions here find out.
    """
    option = f'"{_PROCESS_OPTION}$_jpsi_exported"' if has_scripts else _PROCESS_OPTION
    return [*runner, option]


def before_scripts() -> Iterator[str]:
    """The lines that remember the environment."""
    yield _BEFORE.format(phase=ENVIRONMENT, code=SETUP_CODE)


def after_scripts() -> Iterator[str]:
    """The lines that find what has changed: names in `_jpsi_exported`, values in `_jpsi_new_NAME`."""
    yield _AFTER.format(phase=ENVIRONMENT, code=SETUP_CODE)
