"""Folders on a remote host: shell text that prints or removes them, and the parser of its output.

folder NAME          the following lines are about this folder of a job or an array
marker SECONDS NAME  a file, and when it was written by the remote clock; `-` if that is unknown
text NAME            the following lines, each after a blank, are the content of this file
clock SECONDS        the time by the remote clock
end                  the output is complete
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import attrs

from jpsi.plugin import line, word
from jpsi_engine.remote.markers import TIMES, RemoteClock, RemoteMarker, parse_line
from jpsi_engine.remote.ownership import UNSAFE, render_unsafe_function

#: The directory in the remote spool with a folder for each job that has staged files.
STAGED = "staged"
_END = "end"
_FOLDER = re.compile(r"(?:jobs|arrays)/[A-Za-z0-9][A-Za-z0-9._-]*\Z")
# The files whose text is needed: the intent, the claim, and the request to end. No other text is taken from
# the remote host: the files on this machine that say how a job ended were written on this machine.
_TEXTS = "intent.[0-9]*.json claim claim.[0-9]* array.[0-9]* stop.[0-9]*.json"
# The intent of a whole array; it never changes.
_ARRAY_INTENT = "intent.json"
_TEXT = re.compile(r"intent\.json|(?:intent|stop)\.\d+\.json|claim|claim\.\d+|array\.\d+")
_CONTENT = r"""{
@ENTERING@
@TIMES@
printf 'clock %s\n' "$(date +%s.%N)"
for _jpsi_folder in @FOLDERS@; do
    [ -d "$_jpsi_folder" ] || continue
    echo "folder $_jpsi_folder"
    (
        cd "$_jpsi_folder" || exit
        for _jpsi_name in *; do
            case $_jpsi_name in -* | *[!A-Za-z0-9._-]*) ;; *) printf '%s\n' "$_jpsi_name" ;; esac
        done | _jpsi_times 2>/dev/null
        for _jpsi_name in @TEXTS@; do
            [ -f "$_jpsi_name" ] || continue
            echo "text $_jpsi_name"
            sed 's/^/ /' "$_jpsi_name"
            echo
        done
    )
done
echo @END@
}
"""


@attrs.frozen(slots=True)
class RemoteFolder:
    """The content of one remote folder."""

    #: Its name below the root, such as `jobs/a1`.
    name: str
    #: When its files were written, in nanoseconds by the remote clock; None if unknown.
    times: Mapping[str, int | None]
    #: The content of the files whose text is needed.
    texts: Mapping[str, str]


@attrs.frozen(slots=True)
class RemoteFolders:
    """The parsed output for several folders."""

    folders: Collection[RemoteFolder]
    #: The time by the remote clock; None if the output has none.
    clock_ns: int | None


def render_listing(root: str) -> str:
    """Return shell text that prints the names of all folders of jobs and of arrays."""
    # printf is built into the shell: there may be more names than a command can have as arguments
    names = r"printf '%s\n' jobs/* arrays/*"
    return f"{{\n{_enter_root(root)}\n{names}\necho {_END}\n}}\n"


def _enter_root(root: str) -> str:
    """Return lines that enter the root; if it does not exist, they print the end and exit.

    A root that other users can change is not entered, as any user may have put files into it.
    """
    path = word(root)
    is_safe = f'[ -O . ] && {{ [ -z "$({UNSAFE})" ] || {{ {UNSAFE} >&2; false; }}; }}'
    enter = f"cd {path} && {is_safe} || {{ [ -e {path} ] || echo {_END}; exit; }}"
    return f"{render_unsafe_function(root)}\n{enter}"


def parse_listing(text: str) -> list[str] | None:
    """Return the names of folders; None if some may be missing."""
    names = parse_existing(text)
    return None if names is None else [name for name in names if _is_folder(name)]


def render_content(root: str, folders: Collection[str], *, is_mirrored: bool = False) -> str:
    """Return shell text that prints the content of these folders.

    Args:
        root: the remote spool.
        folders: the names of the folders, relative to the root.
        is_mirrored: True if the mirror has the folders, so that only what may be new in them is printed: the
            intent of an array may be some megabytes.
    """
    values = {
        "@ENTERING@": _enter_root(root),
        "@FOLDERS@": line(*folders),
        "@TEXTS@": _TEXTS if is_mirrored else f"{_ARRAY_INTENT} {_TEXTS}",
        "@TIMES@": TIMES,
        "@END@": _END,
    }
    return re.sub("@[A-Z]+@", lambda match: values[match[0]], _CONTENT)


def parse_folders(text: str) -> RemoteFolders | None:
    """Parse the output of `render_content`; return None if some of it may be missing."""
    lines = text.split("\n")
    if _END not in lines[-2:]:
        return None
    clocks = [parsed.time_ns for parsed in map(parse_line, lines) if isinstance(parsed, RemoteClock)]
    return RemoteFolders(list(_folders(lines)), clocks[0] if clocks else None)


def _folders(lines: list[str]) -> Iterator[RemoteFolder]:
    name, times, texts = "", dict[str, int | None](), dict[str, list[str]]()
    file = ""
    for it in [*lines, "folder "]:
        word_, _, rest = it.partition(" ")
        if it.startswith(" ") and file:
            texts[file].append(it[1:])
        elif word_ == "folder":
            if _is_folder(name):
                yield RemoteFolder(name, times, {key: "\n".join(value) for key, value in texts.items()})
            name, times, texts, file = rest, {}, {}, ""
        elif word_ == "text" and _TEXT.fullmatch(rest):
            file = rest
            texts[file] = []
        else:
            parsed = parse_line(it)
            if isinstance(parsed, RemoteMarker):
                times[parsed.name] = parsed.time_ns


def _is_folder(name: str) -> bool:
    return _FOLDER.match(name) is not None


def render_writes(root: str, files: Mapping[str, str], *, make_folders: bool = False) -> str:
    """Return shell text that writes files of one line; it fails if one could not be written.

    A file that exists is not changed.

    Args:
        root: the remote spool.
        files: the texts of the files, by their names relative to the root.
        make_folders: True to make folders that do not exist; otherwise their files are left out.
    """
    lines = ["{", f"cd {word(root)} || exit", "umask 077", "_jpsi_failed="]
    for name, text in files.items():
        folder, path, prints = word(name.rpartition("/")[0]), word(name), line("printf", r"%s\n", text)
        if make_folders:
            lines.append(f"mkdir -p {folder}")
        writes = f"( set -C; {prints} >{path} ) 2>/dev/null"
        is_left_out = "false" if make_folders else f"[ ! -d {folder} ]"
        lines.append(f"{is_left_out} || {writes} || [ -e {path} ] || _jpsi_failed=1")
    return "\n".join([*lines, '[ -z "$_jpsi_failed" ]', "}", ""])


def render_removal(root: str, folders: Collection[str]) -> str:
    """Return shell text that removes these folders."""
    remove = line("rm", "-rf", *folders)
    # rm(1) fails if a file, such as a marker, is moved into a folder meanwhile: the second rm(1) removes it
    return f"{{\ncd {word(root)} || exit\n{remove} 2>/dev/null || {remove}\n}}\n"


def render_existing(root: str, folders: Collection[str]) -> str:
    """Return shell text that prints which of these folders still exist."""
    loop = f"""for _jpsi_folder in {line(*folders)}; do
    [ ! -e "$_jpsi_folder" ] || printf '%s\\n' "$_jpsi_folder"
done"""
    return f"{{\n{_enter_root(root)}\n{loop}\necho {_END}\n}}\n"


def parse_existing(text: str) -> list[str] | None:
    """Parse the output of `render_existing`; return None if some names may be missing."""
    *names, last = text.splitlines() or [""]
    return None if last != _END else names


def render_removal_unless_staged(root: str, names: Collection[str]) -> str:
    """Return shell text that removes these jobs and arrays, unless staged files of them wait to be got."""
    loop = f"""for _jpsi_name in {line(*names)}; do
    [ -e "{STAGED}/$_jpsi_name" ] || rm -rf "jobs/$_jpsi_name" "arrays/$_jpsi_name"
done"""
    return f"{{\ncd {word(root)} || exit\n{loop}\n}}\n"
