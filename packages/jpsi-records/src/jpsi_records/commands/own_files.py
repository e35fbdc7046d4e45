"""Finds files of the user's that the command of a request names by their paths.

Their content is no part of the request, so that a result is reused even if they have changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..model import Computation, Purity, is_inside

# The directories of what is installed.
_INSTALLED = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", sys.prefix)))
# The operators before the name of a file that a shell writes to, behind others such as `;`.
_OUTPUT = re.compile(r"[();|&]*>{1,2}[|&]?")


def describe_own_files(computation: Computation, records: Path) -> str | None:
    """Return the sentence that a command names files of the user's by their paths; None if it names none.

    In a container these paths name other files, and results of purity `off` are never reused.

    Args:
        computation: what is requested.
        records: the directory of the records; files in it do not change.
    """
    if computation.container_image is not None or computation.purity is Purity.OFF:
        return None
    found = list(dict.fromkeys(find_own_files(computation, [*_INSTALLED, records.absolute()])))
    if not found:
        return None
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"the command names the file {found[0]}{more}, whose content is not part of the request, so that a "
        "result is reused even if the file changes: keep it with `jpsi request put`, and mount it"
    )


def describe_unseen_files(computation: Computation, directory: Path) -> str | None:
    """Return the sentence that a command names files of this directory, which its job does not see.

    Args:
        computation: what is requested; a job runs in a directory of its own, with the mounts alone.
        directory: where the user is. Words without a dot and a slash may have another meaning.
    """
    if computation.container_image is not None:
        return None
    words = (it for word in computation.command for it in (word, *_shell_words(word)))
    names = [it for it in words if ("." in it or "/" in it) and not os.path.isabs(it)]  # noqa: PTH117  as below
    found = [it for it in dict.fromkeys(names) if _is_unseen(it, computation, directory)]
    if not found:
        return None
    files = "files" if len(found) > 1 else "a file"
    return (
        f"the command names {' and '.join(found[:2])}, {files} of this directory, which its job does not "
        "see: keep what it needs with `jpsi request put`, and mount it"
    )


def _is_unseen(name: str, computation: Computation, directory: Path) -> bool:
    place = os.path.normpath(f"/{computation.cwd or ''}/{name}")
    is_mounted = any(is_inside(place, target) for target in computation.mounts)
    return not is_mounted and _is_own_file(directory / name)


def find_own_files(computation: Computation, excluded: Iterable[Path]) -> Iterator[Path]:
    """Yield the regular files of the user that the words of a command name by absolute paths, or with `~`.

    Args:
        computation: what is requested; paths in its mounts are no files of the user's.
        excluded: directories whose files are not meant.
    """
    directories = [*excluded]
    for word in computation.command:
        for path in map(Path, dict.fromkeys(_paths(word))):
            is_mounted = any(is_inside(str(path), target) for target in computation.mounts)
            if not is_mounted and _is_own_file(path) and not _is_below(path, directories):
                yield path


def _paths(word: str) -> Iterator[str]:
    """Yield the absolute paths in a word, and in the words and options in it, as in the text of `sh -c`."""
    for text in (word, *_shell_words(word)):
        for candidate in (text, text.partition("=")[2]):
            path = os.path.expanduser(candidate)  # noqa: PTH111  Path raises for an unknown user
            if os.path.isabs(path):  # noqa: PTH117  most are no paths
                yield os.path.normpath(path)


def _shell_words(text: str) -> Iterator[str]:
    """Yield the words of a text in the shell's language, without the files that it writes to."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    # for shlex, it begins a comment even within a word
    lexer.commenters = ""
    before = ""
    # a text need not be in that language
    with contextlib.suppress(ValueError):
        for word in lexer:
            if not _OUTPUT.fullmatch(before):
                yield word
            before = word


def _is_own_file(path: Path) -> bool:
    try:
        found = path.stat()
    # ValueError: a NUL
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _is_below(path: Path, directories: Iterable[Path]) -> bool:
    places = (path, path.resolve())
    return any(it.is_relative_to(outer) for it in places for outer in directories)
