"""How requests of a job have ended, as files that the dispatcher leaves for that job."""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from ..errors import StoreError

#: Where in the inbox of a job these files are.
ENDED = "ended"
_VERSION = 1


@attrs.frozen(slots=True, kw_only=True)
class RequestResult:
    """How a request has ended."""

    request: str
    #: As that of the request: `complete`, `failed`, `cancelled`, ...; `refused` if it never was one.
    outcome: str
    exit_code: int | None = None
    #: The digest of its output, which a request can mount.
    output: str | None = None
    #: Why it was refused.
    why: str = ""


def result_path(inbox: Path, request_id: str) -> Path:
    """Return where the result of a request is, or will be."""
    return inbox / ENDED / f"{request_id}.json"


def write_result(result: RequestResult) -> str:
    """Return what the file of a result holds."""
    return json.dumps({"v": _VERSION, **attrs.asdict(result)})


def read_result(path: Path) -> RequestResult | None:
    """Return the result in a file; None if it is not there yet.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("v") != _VERSION:
            msg = f"{path} was written by another version"
            raise StoreError(msg)
        return RequestResult(**document)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        msg = f"{path} cannot be read: {e}"
        raise StoreError(msg, e) from e
