"""Folders where files are elsewhere: shell text that tells what is in them, or removes them.

folder NAME          what follows is in this folder of a job or an array
marker SECONDS NAME  a file, and when it was written by the clock over there; `-` if nothing tells that
text NAME            the lines that follow, each after a blank, are what stands in this file
clock SECONDS        the time by the clock over there
end                  that is all
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import attrs

from jpsi.plugin import line, word
from jpsi_engine.remote.markers import TIMES, FarClock, FarMarker, read_line
from jpsi_engine.remote.ownership import UNSAFE, unsafe_function

#: The room, over there, with a folder for each job that has something staged.
STAGED = "staged"
_END = "end"
_FOLDER = re.compile(r"(?:jobs|arrays)/[A-Za-z0-9][A-Za-z0-9._-]*\Z")
# Files whose text is needed: what was asked for, by whom it is run, and that it was told to end. Others are
# not taken from there: what says here how a job ended was written here.
_TEXTS = "intent.[0-9]*.json claim claim.[0-9]* array.[0-9]* stop.[0-9]*.json"
# What was asked for of all that are in an array; it is never another.
_OF_ARRAY = "intent.json"
_TEXT = re.compile(r"intent\.json|(?:intent|stop)\.\d+\.json|claim|claim\.\d+|array\.\d+")
_TELLING = r"""{
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
class FoundFolder:
    """What is in one folder over there."""

    #: Its name below the root, such as `jobs/a1`.
    name: str
    #: When its files were written, in nanoseconds by the clock over there; None where nothing tells.
    times: Mapping[str, int | None]
    #: What stands in those of which that is needed.
    texts: Mapping[str, str]


@attrs.frozen(slots=True)
class FarFolders:
    """What one answer tells."""

    folders: Collection[FoundFolder]
    #: The time by the clock over there; None if it does not say.
    clock_ns: int | None


def listing_text(root: str) -> str:
    """Shell text that names all folders of jobs and of arrays."""
    # by what is built into the shell, as there may be more names than a command can have
    names = r"printf '%s\n' jobs/* arrays/*"
    return f"{{\n{_entering(root)}\n{names}\necho {_END}\n}}\n"


def _entering(root: str) -> str:
    """Lines that enter the root; where there is none, there is nothing, and that is all.

    One that others can change is not entered: what is in it may have been asked for by anybody.
    """
    path = word(root)
    is_safe = f'[ -O . ] && {{ [ -z "$({UNSAFE})" ] || {{ {UNSAFE} >&2; false; }}; }}'
    entering = f"cd {path} && {is_safe} || {{ [ -e {path} ] || echo {_END}; exit; }}"
    return f"{unsafe_function(root)}\n{entering}"


def read_listing(text: str) -> list[str] | None:
    """The names of folders; None if some may be missing."""
    names = read_remaining(text)
    return None if names is None else [name for name in names if _is_folder(name)]


def telling_text(root: str, folders: Collection[str], *, are_here: bool = False) -> str:
    """Shell text that tells what is in these folders.

    Args:
        root: where they are.
        folders: their names below that.
        are_here: whether they are mirrored already, so that only what may be new in them is told: an array
            may be some megabytes.
    """
    values = {
        "@ENTERING@": _entering(root),
        "@FOLDERS@": line(*folders),
        "@TEXTS@": _TEXTS if are_here else f"{_OF_ARRAY} {_TEXTS}",
        "@TIMES@": TIMES,
        "@END@": _END,
    }
    return re.sub("@[A-Z]+@", lambda match: values[match[0]], _TELLING)


def read_folders(text: str) -> FarFolders | None:
    """What that answers; None if some of it may be missing."""
    lines = text.split("\n")
    if _END not in lines[-2:]:
        return None
    clocks = [told.time_ns for told in map(read_line, lines) if isinstance(told, FarClock)]
    return FarFolders(list(_folders(lines)), clocks[0] if clocks else None)


def _folders(lines: list[str]) -> Iterator[FoundFolder]:
    name, times, texts = "", dict[str, int | None](), dict[str, list[str]]()
    file = ""
    for it in [*lines, "folder "]:
        word_, _, rest = it.partition(" ")
        if it.startswith(" ") and file:
            texts[file].append(it[1:])
        elif word_ == "folder":
            if _is_folder(name):
                yield FoundFolder(name, times, {key: "\n".join(value) for key, value in texts.items()})
            name, times, texts, file = rest, {}, {}, ""
        elif word_ == "text" and _TEXT.fullmatch(rest):
            file = rest
            texts[file] = []
        else:
            told = read_line(it)
            if isinstance(told, FarMarker):
                times[told.name] = told.time_ns


def _is_folder(name: str) -> bool:
    return _FOLDER.match(name) is not None


def keeping_text(root: str, files: Mapping[str, str]) -> str:
    """Shell text that makes files of a line, by their names below the root, where their folders are there."""
    return "\n".join(["{", f"cd {word(root)} || exit", "umask 077", *_kept(files), "}", ""])


def _kept(files: Mapping[str, str]) -> Iterator[str]:
    for name, text in files.items():
        folder, says = word(name.rpartition("/")[0]), line("printf", r"%s\n", text)
        yield f"[ ! -d {folder} ] || ( set -C; {says} >{word(name)} ) 2>/dev/null"


def removing_text(root: str, folders: Collection[str]) -> str:
    """Shell text that removes these folders."""
    removing = line("rm", "-rf", *folders)
    # what comes into a folder meanwhile, as a marker that is moved there, keeps it: it goes with the next
    return f"{{\ncd {word(root)} || exit\n{removing} 2>/dev/null || {removing}\n}}\n"


def remaining_text(root: str, folders: Collection[str]) -> str:
    """Shell text that names those of these folders that are there."""
    loop = f"""for _jpsi_folder in {line(*folders)}; do
    [ ! -e "$_jpsi_folder" ] || printf '%s\\n' "$_jpsi_folder"
done"""
    return f"{{\n{_entering(root)}\n{loop}\necho {_END}\n}}\n"


def read_remaining(text: str) -> list[str] | None:
    """The names of those; None if some may be missing."""
    *names, last = text.splitlines() or [""]
    return None if last != _END else names


def removing_done_text(root: str, names: Collection[str]) -> str:
    """Shell text that removes the folders of these jobs and arrays, unless files of them wait to be got."""
    loop = f"""for _jpsi_name in {line(*names)}; do
    [ -e "{STAGED}/$_jpsi_name" ] || rm -rf "jobs/$_jpsi_name" "arrays/$_jpsi_name"
done"""
    return f"{{\ncd {word(root)} || exit\n{loop}\n}}\n"
