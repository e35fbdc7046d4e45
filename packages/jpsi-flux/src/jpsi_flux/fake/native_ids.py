"""How Flux's commands spell the ids of jobs."""

from __future__ import annotations

from jpsi_testing.fake import Invocation

from ..native_ids import HOOKED, canonical_id, f58


def shown(native_id: str, invocation: Invocation | None = None) -> str:
    """An id as it is printed: with a hook where the locale has one, as in the job's own environment."""
    environment = {} if invocation is None else invocation.environment
    locale = environment.get("LC_ALL") or environment.get("LANG", "C.UTF-8")
    return (HOOKED if "UTF-8" in locale else "f") + f58(native_id)[1:]


def read(words: tuple[str, ...]) -> tuple[list[str], str | None]:
    """The ids among the arguments, and what is said if one is none: then nothing is done for any."""
    try:
        return [canonical_id(word) for word in words], None
    except ValueError:
        wrong = next(word for word in words if not _is_id(word))
        return [], f"error: argument JOBID: invalid JobID value: '{wrong}'\n"


def _is_id(word: str) -> bool:
    try:
        canonical_id(word)
    except ValueError:
        return False
    return True
