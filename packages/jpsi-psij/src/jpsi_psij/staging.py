"""Staging as psij spells it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import attrs

from jpsi import StageOutFlags, StagingMode

from .paths import to_path

__all__ = ["URI", "StageIn", "StageOut", "StageOutFlags", "StagingMode"]


@attrs.frozen(slots=False, repr=False)
class URI:
    """A place by its URL, or by a path alone."""

    urlstring: str

    def __getattr__(self, name: str) -> object:
        # hostname, port, scheme, netloc, path, query, fragment, username, password
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(urlsplit(self.urlstring), name)

    def __str__(self) -> str:
        return self.urlstring

    __repr__ = __str__


@attrs.define(slots=False, unsafe_hash=True)
class StageIn:
    """A file or directory to stage in before the job runs."""

    source: str = attrs.field(converter=str)
    #: Its destination, relative to the job's directory.
    target: Path = attrs.field(converter=to_path)
    mode: StagingMode = StagingMode.COPY


def _flags(flags: StageOutFlags) -> StageOutFlags:
    return flags if flags & StageOutFlags.ALWAYS else flags | StageOutFlags.ALWAYS


@attrs.define(slots=False, unsafe_hash=True)
class StageOut:
    """A file or directory to stage out after the job ran."""

    #: Its origin, relative to the job's directory.
    source: Path = attrs.field(converter=to_path)
    target: str = attrs.field(converter=str)
    #: Without `ON_SUCCESS`, `ON_ERROR` and `ON_CANCEL` it is staged out in any case.
    flags: StageOutFlags = attrs.field(default=StageOutFlags.ALWAYS, converter=_flags)
    mode: StagingMode = StagingMode.COPY
