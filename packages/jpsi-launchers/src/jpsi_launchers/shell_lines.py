"""Lines of shell that several launchers need."""

from __future__ import annotations

from jpsi.plugin import ShellLine


def shell(text: str) -> list[ShellLine]:
    """The lines of a text that is shell already."""
    return [ShellLine(it) for it in text.splitlines()]


#: Makes a word of the command that is a colon pass launchers to which a colon ends the command.
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

#: Keeps standard input, which nothing in the background has by itself, at descriptor 3.
KEEP_INPUT = shell("command exec 3<&0 || exec 3</dev/null")
