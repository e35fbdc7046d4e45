"""Shell lines that several launchers use."""

from __future__ import annotations

from jpsi.plugin import ShellLine


def shell(text: str) -> list[ShellLine]:
    """Return the lines of a shell text."""
    return [ShellLine(it) for it in text.splitlines()]


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
