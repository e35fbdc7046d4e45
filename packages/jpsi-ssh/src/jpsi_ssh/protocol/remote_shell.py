"""The program of the shell on the remote host, which executes requests one after the other.

A request is a line `NONCE MODE LENGTH LENGTH`, the shell text and the input, each with the number of bytes
that the line says, and a line with the nonce. The shell does not execute a request that is cut short. A
subshell runs the text with the input as a file. Its output arrives unchanged on both streams, between two
lines with the nonce, which no other program can guess. Output before and after these lines, such as a site's
banner, does not belong to the command. Only a process that a login script leaves in the background can print
between the lines while a command runs, as it has the same streams.

While the text runs, any further line ends the shell and all that it has started. The end of input does the
same in mode `follow`; in mode `run` the text runs on.

The program needs only POSIX commands and does not change the user's variables.
"""

from __future__ import annotations

# The program is one compound command, as a shell may read ahead of what it executes. The client waits until
# the program is ready, and sends requests only then, so that the program reads them and not the shell.
_PROGRAM = r"""{
jpsi_take() { head -c "$1"; }
# some heads read more than they give on
[ "$(printf abc | { head -c 1 >/dev/null; cat; } 2>/dev/null)" = bc ] ||
    jpsi_take() { dd bs=1 count="$1" 2>/dev/null; }
jpsi_folder=${TMPDIR:-/tmp}/jpsi-@NONCE@
jpsi_end() {
    rm -rf "$jpsi_folder"
    kill -9 0
}
jpsi_listen() {
    read -r jpsi_line <&3 || [ -n "$jpsi_line" ] || [ "$jpsi_mode" = follow ] || exit
    jpsi_end
}
jpsi_put() {
    jpsi_input=$jpsi_folder/input
    [ -d "$jpsi_folder" ] || mkdir -m 700 "$jpsi_folder" || return
    jpsi_take "$jpsi_size" <&3 >"$jpsi_input"
}
exec 3<&0 </dev/null
trap : PIPE
printf '\n%s ready\n' @NONCE@
while read -r jpsi_nonce jpsi_mode jpsi_text jpsi_size <&3; do
    case $jpsi_mode in run | follow) ;; *) jpsi_end ;; esac
    printf '\n%s begin\n' "$jpsi_nonce"
    printf '\n%s begin\n' "$jpsi_nonce" >&2
    jpsi_text=$(jpsi_take "$jpsi_text" <&3)
    jpsi_input=/dev/null
    [ "$jpsi_size" = 0 ] || jpsi_put || {
        printf '\n%s end\n' "$jpsi_nonce" >&2
        printf '\n%s end refused\n' "$jpsi_nonce"
        break
    }
    read -r jpsi_line <&3 && [ "$jpsi_line" = "$jpsi_nonce" ] || break
    jpsi_listen &
    (eval "$jpsi_text") <"$jpsi_input" 3<&-
    jpsi_code=$?
    printf '\n%s end\n' "$jpsi_nonce" >&2
    kill $! 2>/dev/null
    wait $! 2>/dev/null
    printf '\n%s end %s\n' "$jpsi_nonce" "$jpsi_code"
done
rm -rf "$jpsi_folder"
exit
}
"""


def program(nonce: str) -> bytes:
    """Return the program; it prints this nonce and `ready` when it can take requests."""
    return _PROGRAM.replace("@NONCE@", nonce).encode("ascii")
