"""Prints and parses ids in the fake of Flux, as Flux's commands do.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

from collections.abc import Iterable

from jpsi_testing.fake import CommandError, Invocation

from ..native_ids import HOOKED, canonical_id, f58


def format_id(native_id: str, invocation: Invocation | None = None) -> str:
    """Return an id as Flux prints it: with the hook in UTF-8 locales and in the job's own environment."""
    environment = {} if invocation is None else invocation.environment
    locale = environment.get("LC_ALL") or environment.get("LANG", "C.UTF-8")
    return (HOOKED if "UTF-8" in locale else "f") + f58(native_id)[1:]


def parse_ids(words: Iterable[str], code: int, message: str) -> list[str]:
    """Return the ids among the arguments.

    Raises:
        CommandError: one of them, `{}` in the message, is invalid; a command then changes no job.
    """
    found = []
    for word in words:
        try:
            found.append(canonical_id(word))
        except ValueError as e:
            raise CommandError(code, message.format(word)) from e
    return found
