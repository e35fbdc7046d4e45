"""Prints and parses ids as Flux's commands do."""

from __future__ import annotations

from jpsi_testing.fake import Invocation

from ..native_ids import HOOKED, canonical_id, f58


def format_id(native_id: str, invocation: Invocation | None = None) -> str:
    """Return an id as Flux prints it: with the hook in UTF-8 locales and in the job's own environment."""
    environment = {} if invocation is None else invocation.environment
    locale = environment.get("LC_ALL") or environment.get("LANG", "C.UTF-8")
    return (HOOKED if "UTF-8" in locale else "f") + f58(native_id)[1:]


def parse_ids(words: tuple[str, ...]) -> tuple[list[str], str | None]:
    """Return the ids among the arguments, or the error if one is invalid; a command then changes no job."""
    try:
        return [canonical_id(word) for word in words], None
    except ValueError:
        invalid = next(word for word in words if not _is_id(word))
        return [], f"error: argument JOBID: invalid JobID value: '{invalid}'\n"


def _is_id(word: str) -> bool:
    try:
        canonical_id(word)
    except ValueError:
        return False
    return True
