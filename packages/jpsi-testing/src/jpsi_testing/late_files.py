"""Simulates a network file system in tests: new files of other machines become visible late.

The tests prove with it that jpsi does not take a job for lost whose files are only not visible yet.
"""

# Its functions take the same arguments as the functions of `os` that they replace.
# ruff: noqa: ANN401, PTH100, PTH118, PTH120

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

# The functions of `os` whose first path must be visible.
_READS = frozenset({"stat", "rename"})
# The functions of `os` that make files, and the positions of the paths that they make.
_MADE = {"mkdir": 0, "rename": 1, "link": 1}


class LateFiles:
    """Replacements for functions of `os` that hide what other machines made below a directory a moment ago.

    This process sees its own files at once. If it makes a file that exists but is hidden, it gets the error
    that the file exists, as from the server. NFS behaves so by default for up to 60 seconds (nfs(5),
    acdirmax).

    Args:
        folder: the directory; everything below it counts.
        seconds: how long a new entry is hidden.
        clock: returns the time to compare with the times of entries.
        made: returns the time when an entry was made.
    """

    def __init__(
        self,
        folder: Path,
        seconds: float,
        clock: Callable[[], float] = time.time,
        made: Callable[[os.stat_result], float] = lambda it: it.st_ctime,
    ) -> None:
        self._folder = os.path.join(os.path.realpath(folder), "")
        self.seconds = seconds
        self._clock = clock
        self._creation_time = made
        # entries that exist now are visible already
        self._own = {os.path.abspath(path) for path in Path(self._folder).rglob("*")}
        self._stat, self._scandir, self._listdir = os.stat, os.scandir, os.listdir

    def is_hidden(self, path: Any) -> bool:
        """Return True if a path exists and is not visible yet."""
        name = self._name(path)
        while name is not None and name not in self._own:
            try:
                made = self._creation_time(self._stat(name, follow_symlinks=False))
            except OSError:
                return False
            if self._clock() - made < self.seconds:
                return True
            name = self._name(os.path.dirname(name))
        return False

    def disown(self, path: Path) -> None:
        """Treat a file of this process as if another machine had made it."""
        self._own.discard(os.path.abspath(path))

    def _name(self, path: Any) -> str | None:
        """Return the full name of a path below the folder; None for any other."""
        if isinstance(path, int):
            return None
        name = os.path.abspath(os.fsdecode(path))
        return name if name.startswith(self._folder) else None

    def _add_own(self, path: Any) -> None:
        name = self._name(path)
        if name is not None:
            self._own.add(name)

    def install(self, put: Callable[[Any, str, Any], object] = setattr) -> None:
        """Let the functions of this process hide new files from now on.

        Args:
            put: sets an attribute; pytest's `monkeypatch.setattr` restores all of them after a test.
        """
        from jpsi_engine.monitor import poll_loop  # noqa: PLC0415  a program that does not follow jobs needs none

        for name in ("stat", "rename", "mkdir", "link"):
            put(os, name, self._replacement(getattr(os, name), name))
        put(os, "open", self._opening(os.open, lambda flags: bool(flags & os.O_CREAT), os.O_RDONLY))
        put(builtins, "open", self._opening(builtins.open, lambda mode: bool(set(mode) & set("wxa")), "r"))
        put(os, "listdir", self._list_names)
        put(os, "scandir", self._scan)
        # no event reports what other machines make
        put(poll_loop, "_watch", lambda _events: None)

    def _replacement(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a function of `os` that does not see hidden files; what it makes is this process's own."""

        def call(*paths: Any, **more: Any) -> Any:
            if name in _READS:
                self._check(paths[0])
            found = function(*paths, **more)
            if name in _MADE:
                self._add_own(paths[_MADE[name]])
            return found

        return call

    def _opening(
        self, function: Callable[..., Any], creates: Callable[[Any], bool], default: Any
    ) -> Callable[..., Any]:
        """Return a function that opens files, and creates them in some modes."""

        def call(path: Any, mode: Any = default, *rest: Any, **more: Any) -> Any:
            if not creates(mode):
                self._check(path)
            found = function(path, mode, *rest, **more)
            if creates(mode):
                self._add_own(path)
            return found

        return call

    def _list_names(self, path: Any = ".") -> list[Any]:
        self._check(path)
        names = self._listdir(path)
        if isinstance(path, int):
            return names
        return [name for name in names if not self.is_hidden(os.path.join(path, name))]

    def _scan(self, path: Any = ".") -> _Entries:
        self._check(path)
        with self._scandir(path) as entries:
            return _Entries([entry for entry in entries if not self.is_hidden(entry.path)])

    def _check(self, path: Any) -> None:
        if self.is_hidden(path):
            raise FileNotFoundError(2, os.strerror(2), path)


class _Entries(Iterator[os.DirEntry[Any]]):
    """The iterator that `os.scandir` returns, over known entries; it holds no descriptor."""

    def __init__(self, entries: list[os.DirEntry[Any]]) -> None:
        self._entries = iter(entries)

    def __next__(self) -> os.DirEntry[Any]:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    close = __exit__
