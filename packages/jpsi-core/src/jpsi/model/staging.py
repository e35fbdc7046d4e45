"""Checks and resolves the paths of staged files on the submitting side; describes a transfer's progress."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs

from jpsi.model.spec import JobSpec

# RFC 3986 3.1: text that begins like this is meant as a URL, not as a path.
_URL = re.compile(r"(file):|([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


def has_staging(spec: JobSpec) -> bool:
    """Return True if the spec has files to stage in, stage out or clean up."""
    return bool(spec.stage_in or spec.stage_out or spec.cleanup)


def with_absolute_places(spec: JobSpec, here: str, home: str) -> JobSpec:
    """Return a valid spec in which the paths on the submitting side are absolute.

    Relative paths are relative to `here`, and `~/` stands for `home`.
    """
    stage_in = [attrs.evolve(item, source=_at(item.source, here, home)) for item in spec.stage_in or ()]
    stage_out = [
        attrs.evolve(item, target=_target(_at(item.target, here, home), item.source))
        for item in spec.stage_out or ()
    ]
    return attrs.evolve(spec, stage_in=stage_in or spec.stage_in, stage_out=stage_out or spec.stage_out)


def _at(text: str, here: str, home: str) -> str:
    path = path_of(text)
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return path if path.startswith("/") else f"{here.rstrip('/')}/{path}"


def _target(path: str, source: Path) -> str:
    # as for cp(1), a slash at the end marks a directory
    return path + source.name if path.endswith("/") else path


def path_of(text: str) -> str:
    """Return the path that a path or `file:` URL on the submitting side denotes.

    >>> path_of("file:///data/a%20b"), path_of("a:b/c")
    ('/data/a b', 'a:b/c')

    Raises:
        ValueError: the text is neither.
    """
    found = _URL.match(text)
    if found is None:
        return text
    if found[1] is None:
        raise ValueError(f"{text!r}: {found[2]}: is not supported; use a path or a file: URL of this machine")
    parts = urlsplit(text)
    path = unquote(parts.path, errors="surrogateescape")
    if parts.netloc.lower() not in {"", "localhost"}:
        why = f"is on the machine {parts.netloc}; use a path or a file: URL of this machine"
    elif parts.query or parts.fragment:
        why = "has a ? or #; in the name of a file write %3F and %23"
    elif not path.startswith("/") or "\0" in path:
        why = "is no absolute path, as a file: URL has"
    else:
        return path
    raise ValueError(f"{text!r} {why}")


def staging_problems(spec: JobSpec, here: str | None) -> Iterator[str]:
    """Yield the problems of a valid spec's staging, one sentence each.

    `here` is the directory of a job that names none; None if it is not known, and the job itself reports an
    absolute path that is not below it.
    """
    places = [(f"stage_in[{index}].source", item.source) for index, item in enumerate(spec.stage_in or ())]
    places += [(f"stage_out[{index}].target", item.target) for index, item in enumerate(spec.stage_out or ())]
    for where, text in places:
        try:
            path_of(text)
        except ValueError as e:
            yield f"{where}: {e}"
    directory = Path(here) if spec.directory is None and here is not None else spec.directory
    for index, path in enumerate(spec.cleanup or ()):
        if ".." in path.parts or not _is_below(path, directory):
            yield f"cleanup[{index}]: {str(path)!r} is not below the job's directory"


def _is_below(path: Path, directory: Path | None) -> bool:
    """Return True if a path is below the directory of a job; of an unknown directory, if it can be."""
    is_rooted = path.is_absolute() or path.parts[:1] == ("~",)
    if is_rooted and directory is not None:
        return directory in path.parents
    return len(path.parts) > (1 if is_rooted else 0)


@attrs.frozen(slots=True, kw_only=True)
class StagingProgress:
    """The part of a file or directory that has been transferred.

    >>> print(StagingProgress(path="a.dat", is_in=True, done=120 * 2**20, total=2**30))
    staging in a.dat: 120.0 MiB of 1.0 GiB
    """

    #: The file or directory, by its path on the submitting machine.
    path: str
    #: True for stage in, False for stage out.
    is_in: bool
    #: The number of bytes that have arrived.
    done: int
    #: The number of bytes in all.
    total: int

    def __str__(self) -> str:
        way = "in" if self.is_in else "out"
        return f"staging {way} {self.path}: {_format_bytes(self.done)} of {_format_bytes(self.total)}"


def _format_bytes(count: int) -> str:
    """Format a number of bytes for people.

    >>> [_format_bytes(it) for it in (0, 1023, 1536, 5 * 2**40)]
    ['0 bytes', '1023 bytes', '1.5 KiB', '5.0 TiB']
    """
    rank = min(max(0, count.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{count / _STEP**rank:.1f} {_UNITS[rank]}" if rank else f"{count} {_UNITS[0]}"
