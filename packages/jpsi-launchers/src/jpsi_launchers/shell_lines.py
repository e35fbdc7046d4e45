"""Shell lines that several launchers use."""

from __future__ import annotations

from jpsi.plugin import Options, ShellLine, line, set_options


def shell(text: str) -> list[ShellLine]:
    """Return the lines of a shell text."""
    return [ShellLine(it) for it in text.splitlines()]


def exec_line(program: str, *words: str) -> ShellLine:
    """Return the line that execs a program with these words before the job's command."""
    return ShellLine(f'{line("exec", program, *words)} "$@"')


def option_words(options: Options) -> list[str]:
    """Return options as words, such as `--nodes=2`."""
    return [f"--{name}" if value is None else f"--{name}={value}" for name, value in set_options(options)]


#: Protects arguments that are a colon from launchers that take a colon for the end of the command.
HIDE_COLONS = shell(
    """\
case " $* " in
*' : '*)
  # A colon would end the command here: each word goes with a dot before it, which is taken off again there.
  for _launch_word in "$@"; do shift; set -- "$@" ".$_launch_word"; done
  # shellcheck disable=SC2016  # for that shell
  set -- /bin/sh -c 'for word in "$@"; do shift; set -- "$@" "${word#.}"; done; exec "$@"' sh "$@"
  ;;
esac"""
)

#: Keeps standard input at descriptor 3, as the shell takes it away from background processes.
KEEP_INPUT = shell("command exec 3<&0 || exec 3</dev/null")
