"""The program that a shell on the remote host is given to read: it carries out requests, one after the other.

A request is a line `NONCE MODE LENGTH LENGTH`, so many bytes of shell text, so many of input, and a line
with the nonce: what is cut short is not carried out. A subshell runs the text with the input as a file. What
it prints comes as it is, on both streams, between two lines that nobody can guess; what comes before them,
such as the banner of a site, and after them is nobody's.

While the text runs, a line ends the shell with all that it has started. So does the end of all there is to
read, where the mode is `follow`; where it is `run`, the text is left to itself then.

It uses what POSIX has, and changes no variable of the user's.
"""

from __future__ import annotations

# It is one command: a shell may read far ahead of what it carries out, so that whoever sends the program
# waits until it is ready, and what comes then is for the program to read.
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
    """The program; when it is ready for requests it prints `READY` with this nonce."""
    return _PROGRAM.replace("@NONCE@", nonce).encode("ascii")
