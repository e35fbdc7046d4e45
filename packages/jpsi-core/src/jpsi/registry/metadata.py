"""What installed distributions say of themselves, read from their metadata; nothing is imported for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

#: How the groups of entry points begin that are jpsi's.
PREFIX = "jpsi."


@attrs.frozen(slots=True)
class EntryPoint:
    """One line of a distribution's entry points."""

    group: str
    name: str
    #: What is offered by that name: `module` or `module:attribute`.
    value: str


@attrs.frozen(slots=True, kw_only=True)
class Distribution:
    """An installed distribution that offers something to jpsi."""

    name: str
    version: str
    #: Its `Requires-Dist` lines.
    requires: tuple[str, ...] = ()
    entry_points: tuple[EntryPoint, ...]
    #: The directory that it is installed in.
    directory: str
    #: Its metadata folder in that directory.
    folder: str
    #: The versions found there, if they are several: then only one of them can be what the files are of.
    rivals: tuple[str, ...] = ()


def distributions(directory: str) -> list[Distribution]:
    """The distributions in one directory that offer something to jpsi."""
    return [found for _, found in _scanned(directory) if found is not None]


def of_path(directories: Iterable[str]) -> list[Distribution]:
    """The distributions that programs see on a path, where the first one of a name hides the others."""
    seen: set[str] = set()
    found = []
    for directory in dict.fromkeys(directories):
        here = list(_scanned(directory or "."))
        found += [it for key, it in here if it is not None and key not in seen]
        seen.update(key for key, _ in here)
    return found


def canonical(name: str) -> str:
    """A distribution's name as names are compared.

    >>> canonical("JPSI_Core.x")
    'jpsi-core-x'
    """
    return _SEPARATORS.sub("-", name).lower()


_SEPARATORS = re.compile("[-_.]+")


def _scanned(directory: str) -> Iterator[tuple[str, Distribution | None]]:
    """Every distribution in a directory by its canonical name; None for what offers jpsi nothing."""
    try:
        names = os.listdir(directory)  # noqa: PTH208  twice as fast, for every directory of sys.path
    except NotADirectoryError:
        yield from _archived(directory)
        return
    except OSError:
        return
    folders: dict[str, list[str]] = {}
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            folders.setdefault(canonical(name.rpartition(".")[0].partition("-")[0]), []).append(name)
    for key, rivals in folders.items():
        found = [_read(directory, folder) for folder in rivals]
        versions = tuple(sorted({it.version for it in found if it is not None}))
        offering = [it for it in found if it is not None]
        if len(versions) > 1:
            yield from ((key, attrs.evolve(it, rivals=versions)) for it in offering)
        else:
            yield key, offering[0] if offering else None


def _read(directory: str, folder: str) -> Distribution | None:
    # Most distributions offer jpsi nothing: of them one file is read, if that.
    path = os.path.join(directory, folder)  # noqa: PTH118  as above
    text = _text(f"{path}/entry_points.txt")
    if PREFIX not in text:
        return None
    metadata = _text(f"{path}/METADATA") or _text(f"{path}/PKG-INFO")
    return _distribution(text, metadata, directory, path)


def _distribution(entry_points: str, metadata: str, directory: str, folder: str) -> Distribution | None:
    offered = tuple(it for it in parse_entry_points(entry_points) if it.group.startswith(PREFIX))
    headers = parse_headers(metadata)
    if not offered:
        return None
    return Distribution(
        name=_first(headers.get("name")),
        version=_first(headers.get("version")),
        requires=tuple(headers.get("requires-dist", ())),
        entry_points=offered,
        directory=directory,
        folder=folder,
    )


def _first(values: Sequence[str] | None) -> str:
    return values[0] if values else "unknown"


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  as above
            return file.read()
    except OSError:
        return ""


def _archived(path: str) -> Iterator[tuple[str, Distribution | None]]:
    """What an archive on sys.path holds, as zipapps have it."""
    from importlib.metadata import distributions as all_in

    for found in all_in(path=[path]):
        text = found.read_text("entry_points.txt") or ""
        metadata = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
        yield canonical(found.name or ""), _distribution(text, metadata, path, path)


def parse_entry_points(text: str) -> Iterator[EntryPoint]:
    r"""The lines of an `entry_points.txt`.

    >>> list(parse_entry_points("[jpsi.executors]\nmine = my_plugin:hooks\n"))
    [EntryPoint(group='jpsi.executors', name='mine', value='my_plugin:hooks')]
    """
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield EntryPoint(group, name.strip(), value.strip())


def parse_headers(text: str) -> dict[str, list[str]]:
    r"""The headers of a METADATA file, by name in small letters.

    >>> parse_headers("Name: x\nRequires-Dist: a\nRequires-Dist: b;\n  python_version>'3'\n\nName: y")
    {'name': ['x'], 'requires-dist': ['a', "b; python_version>'3'"]}
    """
    headers: dict[str, list[str]] = {}
    values: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            break
        if line[0] in " \t":
            if values:
                values[-1] = f"{values[-1]} {line.strip()}"
            continue
        name, _, value = line.partition(":")
        values = headers.setdefault(name.lower(), [])
        values.append(value.strip())
    return headers
