"""The arguments of the commands about a document: its file, and how it is to be read and planned."""

from __future__ import annotations

import attrs


@attrs.frozen(slots=True, kw_only=True)
class Arguments:
    """A document, and how it is to be read and planned."""

    file: str
    executor: str | None = None
    is_strict: bool = False
    #: `NAME=VALUE` each.
    parameters: tuple[str, ...] = ()
    #: Where subsystems are; None is where they usually are.
    subsystems: str | None = None
    missing: str = "ignore"
    #: `SUBSYSTEM.FIELD=OPTION` each.
    constraints: tuple[str, ...] = ()
