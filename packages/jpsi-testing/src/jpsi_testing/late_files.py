"""A directory as a client of a network file system sees it: new files of other machines show late."""

# Its methods take the same arguments as the functions of `os` that they replace.
# ruff: noqa: ANN401, PTH100, PTH118, PTH120

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self


class LateFiles:
    """Replacements for functions of `os` that do not show what was made below a directory a moment ago.

    This process sees its own files at once. If it makes a file that exists but does not show yet, it gets the
    error of the server, which knows of the file. NFS behaves so by default for up to 60 seconds (nfs(5),
    acdirmax).

    Args:
        folder: the directory; everything below it counts.
        seconds: how long an entry does not show.
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
        # entries that exist now have shown before
        self._own = {os.path.abspath(path) for path in Path(self._folder).rglob("*")}
        self._stat, self._open, self._scandir = os.stat, os.open, os.scandir
        self._listdir, self._mkdir, self._rename, self._link = os.listdir, os.mkdir, os.rename, os.link
        self._open_file = builtins.open

    def is_hidden(self, path: Any) -> bool:
        """Return True if a path exists and does not show yet."""
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

    def replacements(self) -> dict[str, Callable[..., Any]]:
        """Return the methods that replace functions of `os`, by the names of these."""
        return {
            "stat": self.stat,
            "open": self.open,
            "scandir": self.scandir,
            "listdir": self.listdir,
            "mkdir": self.mkdir,
            "rename": self.rename,
            "link": self.link,
        }

    def install(self, put: Callable[[Any, str, Any], object] = setattr) -> None:
        """Let this process see the folder so from now on.

        Args:
            put: sets an attribute; pytest's `monkeypatch.setattr` restores all of them after a test.
        """
        from jpsi_engine.monitor import poll_loop  # noqa: PLC0415  a program that does not follow jobs needs none

        for name, function in self.replacements().items():
            put(os, name, function)
        put(builtins, "open", self.open_file)
        # no event reports what other machines make
        put(poll_loop, "_watch", lambda _events: None)

    # The replacements for functions of `os`.

    def stat(self, path: Any, **more: Any) -> os.stat_result:
        """See `os.stat`."""
        self._check(path)
        return self._stat(path, **more)

    def open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        """See `os.open`."""
        if not flags & os.O_CREAT:
            self._check(path)
        fd = self._open(path, flags, mode, **more)
        if flags & os.O_CREAT:
            self._add_own(path)
        return fd

    def open_file(self, file: Any, mode: str = "r", *rest: Any, **more: Any) -> IO[Any]:
        """See `open`."""
        if not set(mode) & set("wxa"):
            self._check(file)
        found = self._open_file(file, mode, *rest, **more)
        if set(mode) & set("wxa"):
            self._add_own(file)
        return found

    def mkdir(self, path: Any, *rest: Any, **more: Any) -> None:
        """See `os.mkdir`."""
        self._mkdir(path, *rest, **more)
        self._add_own(path)

    def rename(self, source: Any, target: Any, **more: Any) -> None:
        """See `os.rename`."""
        self._check(source)
        self._rename(source, target, **more)
        self._add_own(target)

    def link(self, source: Any, target: Any, **more: Any) -> None:
        """See `os.link`."""
        self._link(source, target, **more)
        self._add_own(target)

    def listdir(self, path: Any = ".") -> list[Any]:
        """See `os.listdir`."""
        self._check(path)
        names = self._listdir(path)
        if self._name(path) is None and not self._is_folder(path):
            return names
        return [name for name in names if not self.is_hidden(os.path.join(path, name))]

    def scandir(self, path: Any = ".") -> _Entries:
        """See `os.scandir`."""
        self._check(path)
        with self._scandir(path) as entries:
            found = list(entries)
        return _Entries([entry for entry in found if not self.is_hidden(entry.path)])

    def _is_folder(self, path: Any) -> bool:
        return (
            not isinstance(path, int) and os.path.join(os.path.abspath(os.fsdecode(path)), "") == self._folder
        )

    def _check(self, path: Any) -> None:
        if self.is_hidden(path):
            raise FileNotFoundError(2, os.strerror(2), path)


class _Entries:
    """The iterator that `os.scandir` returns, over known entries."""

    def __init__(self, entries: list[os.DirEntry[Any]]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[os.DirEntry[Any]]:
        return self._entries

    def __next__(self) -> os.DirEntry[Any]:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: the iterator holds no descriptor."""
