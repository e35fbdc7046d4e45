"""Reads the metadata of installed distributions, without importing them.

The library importlib-metadata reads the files. This module lists the directories itself, since the library
reports neither two versions of a distribution in one directory nor the metadata directory that it has read.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import attrs
import importlib_metadata
from importlib_metadata import EntryPoint

from jpsi.contract import line

#: The prefix of jpsi's entry-point groups.
PREFIX = "jpsi."
#: The distributions whose versions others depend on; always found, even without entry points.
FOUNDATIONS = ("jpsi-core", "jpsi-engine")


@attrs.frozen(slots=True, kw_only=True)
class Distribution:
    """An installed distribution that provides plugins for jpsi, or is one of its foundations."""

    name: str
    version: str
    #: Its `Requires-Dist` lines.
    requires: tuple[str, ...] = ()
    entry_points: tuple[EntryPoint, ...]
    #: The directory that it is installed in.
    directory: str
    #: Its metadata directory in that directory.
    folder: str
    #: All versions found there, if there are several: then the files can belong to one of them only.
    rivals: tuple[str, ...] = ()


def distributions(directory: str) -> list[Distribution]:
    """Return the distributions in one directory that provide plugins for jpsi."""
    return [found for _, found in _scanned(directory) if found is not None]


def of_path(directories: Iterable[str]) -> list[Distribution]:
    """Return the distributions on a search path; the first of each name hides the others."""
    seen: set[str] = set()
    found = []
    for directory in dict.fromkeys(directories):
        here = list(_scanned(directory or "."))
        found += [it for key, it in here if it is not None and key not in seen]
        seen.update(key for key, _ in here)
    return found


def install_command(requirement: str) -> str:
    """Return the command that installs a distribution of this project, such as `jpsi-cli[top]`.

    The packages come from the clone, or the folder of wheels, that jpsi-core came from.
    """
    own = next(iter(importlib_metadata.distributions(name=FOUNDATIONS[0])), None)
    url = _URL.search((own and own.read_text("direct_url.json")) or "")
    return line(*installer(url[1] if url else ""), requirement)


def installer(origin: str) -> list[str]:
    """Return the command that installs from an origin: the URL of a distribution, or an empty text."""
    path = Path("/", unquote(urlsplit(origin).path))
    for directory in (path, *path.parents) if origin.startswith("file:") else ():
        # these never raise, as the methods of Path do in a directory that may not be read
        if os.path.isfile(directory / "dev") and os.path.isdir(directory / "packages/jpsi-core"):  # noqa: PTH112, PTH113
            return [str(directory / "dev"), "install"]
    # no index has jpsi yet: without a URL it came from a folder that only the user knows
    return ["pip", "install", "--find-links", str(path.parent) if origin.startswith("file:") else "DIRECTORY"]


def canonical(name: str) -> str:
    """Return a distribution's name in its normalised form.

    >>> canonical("JPSI_Core.x")
    'jpsi-core-x'
    """
    return _SEPARATORS.sub("-", name).lower()


_SEPARATORS = re.compile("[-_.]+")
# The ends of the names of metadata directories.
_FOLDERS = (".dist-info", ".egg-info")
_URL = re.compile(r'"url":\s*"([^"]*)"')  # PEP 610


def _scanned(directory: str) -> Iterator[tuple[str, Distribution | None]]:
    """Yield every distribution in a directory by its canonical name; None if it has no plugin for jpsi."""
    try:
        folders = _metadata_folders(directory)
    except NotADirectoryError:
        yield from _archived(directory)
        return
    except OSError:
        return
    for key, rivals in folders.items():
        offering = [it for name in rivals if (it := _in_folder(key, directory, name)) is not None]
        versions = tuple(sorted({it.version for it in offering}))
        if len(versions) > 1:
            yield from ((key, attrs.evolve(it, rivals=versions)) for it in offering)
        else:
            yield key, offering[0] if offering else None


def _metadata_folders(directory: str) -> Mapping[str, Sequence[str]]:
    """Return the names of metadata directories by the canonical names of their distributions.

    A directory is listed again only if it has changed; the imports of Python do the same.

    Raises:
        NotADirectoryError: it is a file, such as a zipapp.
        OSError: it cannot be listed.
    """
    known = _listed.get(directory)
    if known is not None and known.version == _version_of_file(directory):
        return known.folders
    # both see one directory, whatever becomes of the path meanwhile
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        status = os.fstat(opened)
        names = os.listdir(opened)  # noqa: PTH208  twice as fast, for every directory of sys.path
    finally:
        os.close(opened)
    found: dict[str, list[str]] = {}
    for name in names:
        if name.endswith(_FOLDERS):
            found.setdefault(canonical(name.rpartition(".")[0].partition("-")[0]), []).append(name)
    if time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED_SECONDS:
        if len(_listed) >= _MOST_LISTED:
            _listed.clear()
        _listed[directory] = _Listing(_version(status), found)
    return found


class _Listing(NamedTuple):
    """The metadata directories in a directory, as of a version of it."""

    version: tuple[int, ...]
    folders: Mapping[str, Sequence[str]]


# Programs that make many executors look at the same directories each time.
_listed: dict[str, _Listing] = {}
_MOST_LISTED = 256
# A directory that changes twice within a step of its file system's clock has the same times after both. The
# steps take up to two seconds, and that clock may be behind this machine's.
_SETTLED_SECONDS = 60.0


class _Reading(NamedTuple):
    """The distribution that the files of a folder describe, if it has plugins for jpsi."""

    found: Distribution | None


def _in_folder(key: str, directory: str, name: str) -> Distribution | None:
    folder = os.path.join(directory, name)  # noqa: PTH118  as above
    versions = {"entry_points.txt": _version_of_file(f"{folder}/entry_points.txt")}
    if versions["entry_points.txt"] is None and key not in FOUNDATIONS:
        # most distributions have no plugin for any program
        return None
    versions |= {file: _version_of_file(f"{folder}/{file}") for file in ("METADATA", "PKG-INFO")}
    wanted = (key, folder, *versions.values())
    # another thread may clear it meanwhile
    known = _read.get(wanted)
    if known is not None:
        return known.found
    failed: list[str] = []

    def read(file: str) -> str | None:
        try:
            with open(f"{folder}/{file}", encoding="utf-8", errors="replace") as text:  # noqa: PTH123  as above
                return text.read()
        except OSError:
            failed.append(file)
            raise

    found = _distribution(key, _Files(read), directory, folder)
    # a file that exists, and could not be read this time, is read again the next time
    if not any(versions[file] for file in failed):
        if len(_read) >= _MOST_READ:
            _read.clear()
        _read[wanted] = _Reading(found)
    return found


# What was read, by the folder and the versions of its files: a program that makes an executor for each of
# many tasks would otherwise read a hundred files each time.
_read: dict[Hashable, _Reading] = {}
_MOST_READ = 2048


def _version_of_file(path: str) -> tuple[int, ...] | None:
    """Return numbers that change with a file or with who may read it; None if it cannot be found."""
    try:
        return _version(os.stat(path))  # noqa: PTH116  as above
    except OSError:
        return None


def _version(it: os.stat_result) -> tuple[int, ...]:
    return it.st_dev, it.st_ino, it.st_nlink, it.st_size, it.st_mtime_ns, it.st_ctime_ns


def _archived(path: str) -> Iterator[tuple[str, Distribution | None]]:
    """Yield the distributions in an archive on sys.path, such as a zipapp."""
    for found in importlib_metadata.distributions(path=[path]):
        files = _Files(found.read_text)
        key = canonical(files.header("Name"))
        yield key, _distribution(key, files, path, path)


class _Files(importlib_metadata.Distribution):
    """The metadata files of a distribution, any of which may be missing, unreadable or damaged."""

    def __init__(self, read: Callable[[str], str | None]) -> None:
        self._read = read
        self._lines = _ENTRY_LINE

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file; None if it cannot be read."""
        try:
            text = self._read(filename)
        except (OSError, UnicodeError):
            return None
        if filename == "entry_points.txt" and text is not None:
            # The library does not support `;`, and fails at a line that is no group and no entry point.
            lines = map(str.strip, text.splitlines())
            return "\n".join(line for line in lines if self._lines.fullmatch(line))
        return text

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Return the path of a file of the distribution; the library requires this, jpsi never calls it."""
        return Path(path)

    def offered(self) -> list[EntryPoint]:
        """Return its entry points."""
        try:
            found = self.entry_points
        except ValueError:
            # importlib-metadata 8.7: one value that is no reference makes it fail for all entry points
            self._lines = _REFERENCE_LINE
            found = self.entry_points
        return [EntryPoint(it.name, it.value, it.group.strip()) for it in found]

    def header(self, name: str) -> str:
        """Return a header of its metadata; `unknown` if it has none."""
        return next(iter(self.headers(name)), "unknown")

    def headers(self, name: str) -> tuple[str, ...]:
        """Return all headers of one name, each as one line."""
        return tuple(" ".join(value.split()) for key, value in self._headers if key == name.lower())

    @functools.cached_property
    def _headers(self) -> list[tuple[str, str]]:
        """The headers by their names in lower case; the library would import an e-mail parser for them."""
        text = self.read_text("METADATA") or self.read_text("PKG-INFO") or ""
        lines = _FOLDED.sub(" ", _BLANK_LINE.split(text, maxsplit=1)[0]).split("\n")
        return [(key.lower(), value) for key, _, value in (line.partition(":") for line in lines)]


_FOLDED = re.compile(r"\r?\n[ \t]+")
_BLANK_LINE = re.compile(r"\r?\n\r?\n")
_ENTRY_LINE = re.compile(r"\[.*\]|[^#;=][^=]*=.*")
_REFERENCE_LINE = re.compile(r"\[.*\]|[^#;=][^=]*=\s*[\w.]+\s*(:\s*[\w.]+\s*)?(\[.*\]\s*)?")


def _distribution(key: str, files: _Files, directory: str, folder: str) -> Distribution | None:
    # Most distributions have no plugin for jpsi: at most one of their files is read.
    offered: tuple[EntryPoint, ...] = ()
    if PREFIX in (files.read_text("entry_points.txt") or ""):
        offered = tuple(it for it in files.offered() if it.group.startswith(PREFIX))
    if not offered and key not in FOUNDATIONS:
        return None
    return Distribution(
        name=files.header("Name"),
        version=files.header("Version"),
        requires=files.headers("Requires-Dist"),
        entry_points=offered,
        directory=directory,
        folder=folder,
    )
