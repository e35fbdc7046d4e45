"""The rule of `jpsi.contract.ownership` on a remote host: shell text that prints unsafe directories.

The commands for a remote spool begin with it, as other users could forge jobs in a directory that they can
change.

It checks what POSIX commands show: the directories as they are named and as they are behind links, and the
links in the given path. Of access control lists it sees only what shows in the mode. A group counts as the
user's private one if getent(1) lists no other member.
"""

from __future__ import annotations

from jpsi.plugin import line

#: The shell function of `render_unsafe_function`: it prints a line of ls(1) for each unsafe directory.
UNSAFE = "_jpsi_unsafe"

_FUNCTION = r"""@UNSAFE@() (
    for _jpsi_at in @DOWN@; do [ ! -d "$_jpsi_at" ] || break; done
    _jpsi_at=$(cd "$_jpsi_at" && pwd -P)
    set -- @DOWN@
    while [ -n "$_jpsi_at" ] && [ "$_jpsi_at" != / ]; do
        set -- "$@" "$_jpsi_at"
        _jpsi_at=${_jpsi_at%/*}
    done
    _jpsi_user=$(id -u) _jpsi_private='-links 0'
    export LC_ALL=C
    unset IFS
    set -f
    _jpsi_list() {
        # shellcheck disable=SC2086  # several words
        find "$@" -prune '(' ! -user 0 ! -user "$_jpsi_user" -o \
            ! -type l ! -perm -1000 '(' -perm -002 -o -perm -020 ! $_jpsi_private ')' ')' \
            -exec ls -ldn '{}' ';' 2>/dev/null
    }
    # only for a directory that its group can write to, the groups are looked up, which may be slow
    [ -n "$(_jpsi_list "$@")" ] || exit 0
    _jpsi_name=$(id -un)
    [ "$(id -gn)" != "$_jpsi_name" ] || case $(getent group "$_jpsi_name" 2>/dev/null) in
        *: | *:"$_jpsi_name") _jpsi_private="( -user $_jpsi_user -group $(id -g) )" ;;
    esac
    _jpsi_list "$@"
)"""
# The number of fields before the name in a line of ls(1): mode, links, owner, group, size, month, day, time.
_FIELDS = 8


def render_unsafe_function(root: str) -> str:
    """Return shell text that defines `UNSAFE` for a directory and all directories on the path to it."""
    parts = root.strip("/").split("/")
    down = ["/" + "/".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return _FUNCTION.replace("@UNSAFE@", UNSAFE).replace("@DOWN@", line(*down, "/"))


def parse_unsafe(text: str) -> str | None:
    """Return a sentence about the first directory that is not safe; None if all are safe.

    >>> parse_unsafe("drwxrwxrwx 2 0 0 40 Nov 23 02:00 /data/all of us")
    '/data/all of us (owner 0, drwxrwxrwx) can be changed by others'
    """
    for found in text.splitlines():
        fields = found.split(None, _FIELDS)
        if len(fields) > _FIELDS and fields[_FIELDS].startswith("/"):
            return f"{fields[_FIELDS]} (owner {fields[2]}, {fields[0]}) can be changed by others"
    return None
