"""Makes the commands for files of a remote host, which needs sh, dd, find, ls, and sha256sum or cksum.

Paths are arguments of a command and never part of its shell text. A command that handles many files prints
the number of the file that failed in the last line of its standard error.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import chain

from jpsi.plugin import Command
from jpsi_engine.transfer.checksums import SPAN, Tool
from jpsi_engine.transfer.trees import Entry, Kind

#: Reads begin at a multiple of this size, in bytes.
BLOCK = 1 << 16
# The timeout of a transfer command: transfers may be slow, but a connection may be dead.
_SECONDS = 120
_LISTING_SECONDS = 600
# The slowest reading that is not taken for a dead connection, when a remote host reads a file for its
# checksums.
_BYTES_PER_SECOND = 1 << 20

# Variables that change the output of the programs.
_OUTPUT_VARIABLES = ("BLOCK_SIZE", "LS_BLOCK_SIZE", "BLOCKSIZE", "QUOTING_STYLE", "POSIXLY_CORRECT")

_TOOL = "command -v sha256sum >/dev/null 2>&1 && echo sha256sum || echo cksum"

#: KIND PATH MODE TEXT of each: d a directory, l a link, m a mode. Prints the number of each directory that
#: was missing, or was closed to its owner, as an earlier transfer may have left it.
MAKE = r"""
number=0
make() {
    case $1 in
        d)
            if [ -d "$2" ]; then
                [ -w "$2" ] && [ -x "$2" ] || { chmod u+rwx "$2" 2>/dev/null && echo "$number"; } || :
            else
                mkdir -p -m "$3" "$2" && echo "$number"
            fi
            ;;
        l)
            if [ -d "$2" ] && ! [ -h "$2" ]; then echo 'Is a directory' >&2; return 1; fi
            rm -f "$2" && ln -s -- "$4" "$2"
            ;;
        m) chmod "$3" "$2" ;;
    esac
}
while [ $# -gt 0 ]; do
    make "$@" || { echo "number $number" >&2; exit 1; }
    number=$((number + 1))
    shift 4
done
"""

#: A name for the input, its length, then PATH PART SIZE MODE of each file, in the order of the input. The
#: input becomes a file first: from a pipe, dd may read less than it asks for.
WRITE = r"""
mask=$(umask)
umask 077
set -C
input=$1 length=$2
shift 2
folder=${input%/*}
[ -d "${folder:-/}" ] || (umask "$mask"; mkdir -p "$folder") || exit
rm -f "$input"
# a shell itself would end with what it cannot make
(cat >"$input") && [ "$(($(wc -c <"$input")))" -eq "$length" ] || { rm -f "$input"; exit 1; }
exec <"$input"
rm -f "$input"
number=0
write() {
    while [ $# -gt 0 ]; do
        if [ -d "$1" ]; then echo 'Is a directory' >&2; return 1; fi
        folder=${1%/*}
        [ -d "${folder:-/}" ] || (umask "$mask"; mkdir -p "$folder") || return
        rm -f "$2"
        if [ "$3" = 0 ]; then
            true >"$2" || return
        else
            dd bs="$3" count=1 >"$2" || return
        fi
        chmod "$4" "$2" && mv -f "$2" "$1" || return
        number=$((number + 1))
        shift 4
    done
}
write "$@" && exit
echo "number $number" >&2
while [ $# -gt 0 ]; do
    rm -f "$2"
    shift 4
done
exit 1
"""

#: TARGET PART. Prints the tool for checksums, and the sizes of the part and the target, -1 for a missing
#: file. A part that another user may have made counts as missing.
INSPECT = r"""
folder=${1%/*}
[ -d "${folder:-/}" ] || mkdir -p "$folder" || exit
if [ -d "$1" ]; then echo 'Is a directory' >&2; exit 1; fi
@TOOL@
size=-1
found=$(find "$2" -prune -type f -user "$(id -u)" -links 1 2>/dev/null)
if [ -n "$found" ]; then size=$(wc -c <"$2") || exit; fi
echo $((size))
size=-1
if [ -f "$1" ] && ! [ -h "$1" ]; then size=$(wc -c <"$1") || exit; fi
echo $((size))
""".replace("@TOOL@", _TOOL)

#: PART OFFSET. Appends the input to a part, which it first truncates to the offset. Prints the size.
APPEND = r"""
umask 077
if [ "$2" = 0 ]; then
    rm -f "$1"
    set -C
    (cat >"$1") || exit
else
    size=$(wc -c <"$1") || exit
    if [ "$size" -gt "$2" ]; then dd if=/dev/null of="$1" bs=1 seek="$2" || exit; fi
    if [ "$size" -lt "$2" ]; then echo 'it has become shorter' >&2; exit 1; fi
    (cat >>"$1") || exit
fi
echo $(($(wc -c <"$1")))
"""

#: FILE TOOL, then BLOCKS-BEFORE BLOCKS BYTES of each span; BYTES is 0 if the span ends with a whole block.
SUMS = r"""
file=$1 tool=$2
shift 2
while [ $# -gt 0 ]; do
    if [ "$3" = 0 ]; then
        dd if="$file" bs=@BLOCK@ skip="$1" count="$2" | "$tool" || exit
    else
        dd if="$file" bs=@BLOCK@ skip="$1" count="$2" | head -c "$3" | "$tool" || exit
    fi
    shift 3
done
""".replace("@BLOCK@", str(BLOCK))

#: PART TARGET MODE SIZE. Checks the size of a part, sets its mode and renames it to its target. Prints the
#: line of ls for the target.
FINISH = r"""
if [ -d "$2" ]; then echo 'Is a directory' >&2; exit 1; fi
[ "$1" = "$2" ] || [ "$(($(wc -c <"$1")))" -eq "$4" ] || { echo 'it has another size' >&2; exit 1; }
chmod "$3" "$1" || exit
[ "$1" = "$2" ] || mv -f "$1" "$2" || exit
ls -ldn "$2"
"""

#: PATH. Prints the tool for checksums, and for each entry the line of ls, its path, and the text of a link.
LIST = r"""
@TOOL@
[ -e "$1" ] || ls -d "$1" >/dev/null || exit
find -H "$1" -exec sh -c '
    top=$1
    shift
    for path do
        link=
        if [ "$path" = "$top" ]; then
            ls -ldnL "$path"
        else
            ls -ldn "$path"
            if [ -h "$path" ]; then link=$(readlink "$path" && echo .) || exit; fi
        fi || exit
        printf "\\0%s\\0%s\\0" "$path" "$link"
    done
' sh "$1" {} +
""".replace("@TOOL@", _TOOL)

#: FILE BLOCKS-BEFORE BLOCKS
READ = 'exec dd if="$1" bs=@BLOCK@ skip="$2" count="$3"'.replace("@BLOCK@", str(BLOCK))

#: PATH SIZE of each file
READ_MANY = r"""
number=0
while [ $# -gt 0 ]; do
    [ "$2" = 0 ] || dd if="$1" bs="$2" count=1 || { echo "number $number" >&2; exit 1; }
    number=$((number + 1))
    shift 2
done
"""

#: FILE OFFSET MOST; a negative offset counts from the end. Prints the size and the offset of the data that
#: follows; "0 0" for a special file. Fails if there is no such file.
READ_RANGE = r"""
if [ -e "$1" ] && ! [ -f "$1" ]; then
    if [ -d "$1" ]; then echo 'Is a directory' >&2; exit 1; fi
    echo '0 0'
    exit
fi
size=$(wc -c "$1") || exit
size=$((${size%"$1"}))
at=$2 most=$3
[ "$at" -ge 0 ] || at=$((size + at))
if [ "$at" -lt 0 ] || [ "$at" -gt "$size" ]; then at=0; fi
[ "$most" -le $((size - at)) ] || most=$((size - at))
echo "$size $at"
[ "$most" -le 0 ] || tail -c +$((at + 1)) "$1" | head -c "$most"
"""


def shell_command(script: str, *arguments: object, seconds: int = _SECONDS) -> Command:
    """Return the command that runs one of these scripts with arguments."""
    return Command(
        ["/bin/sh", "-c", script, "sh", *map(str, arguments)],
        timeout=timedelta(seconds=seconds),
        environment={"LC_ALL": "C"},
        unset=_OUTPUT_VARIABLES,
    )


def make_command(entries: Iterable[Entry], root: str) -> Command:
    """Return the command that makes links and directories, which are open to their owner for now."""
    letters = {Kind.DIRECTORY: "d", Kind.LINK: "l"}
    groups = ((letters[it.kind], it.below(root), octal(it.mode | 0o700), it.text) for it in entries)
    return shell_command(MAKE, *chain.from_iterable(groups))


def chmod_command(entries: Iterable[Entry], root: str) -> Command:
    """Return the command that gives directories their final modes."""
    return shell_command(
        MAKE, *chain.from_iterable(("m", it.below(root), octal(it.mode), "") for it in entries)
    )


def checksum_command(path: str, tool: Tool, spans: range, size: int) -> Command:
    """Return the command that prints the checksums of these spans of a file.

    Args:
        path: the file.
        tool: the program that computes the checksums.
        spans: the numbers of the spans.
        size: the number of bytes, from the beginning of the file, at which the last span ends.
    """
    arguments, lengths = [], [min(SPAN, size - span * SPAN) for span in spans]
    for span, length in zip(spans, lengths, strict=True):
        arguments += [span * SPAN // BLOCK, -(-length // BLOCK), length if length % BLOCK else 0]
    seconds = _SECONDS + sum(lengths) // _BYTES_PER_SECOND
    return shell_command(SUMS, path, tool, *arguments, seconds=seconds)


def list_command(path: str) -> Command:
    """Return the command that lists a tree."""
    return shell_command(LIST, path, seconds=_LISTING_SECONDS)


def parse_failed_number(message: str) -> int:
    """Return the number of the file that failed, from a command's standard error; 0 if it does not say."""
    for line in reversed(message.splitlines()):
        word, _, number = line.partition(" ")
        if word == "number" and number.isdecimal():
            return int(number)
    return 0


def octal(mode: int) -> str:
    """Return a mode as chmod(1) takes it."""
    return f"{mode:04o}"
