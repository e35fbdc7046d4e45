"""The arguments of the commands about a document: its file, and options for reading and planning it."""

from __future__ import annotations

import attrs


@attrs.frozen(slots=True, kw_only=True)
class Arguments:
    """A document, and options for reading and planning it."""

    file: str
    executor: str | None = None
    is_strict: bool = False
    is_lenient: bool = False
    #: Values of parameters, each `NAME=VALUE`.
    parameters: tuple[str, ...] = ()
    #: The directory of subsystems; None is the default one.
    subsystems: str | None = None
    missing: str = "ignore"
    #: Options for requirements, each `SUBSYSTEM.FIELD=OPTION`.
    constraints: tuple[str, ...] = ()
