"""Writes and reads the result of a request that a job has made, as a file in the job's inbox.

The dispatcher writes the file once the request has ended or is cancelled; the job waits for it with
`Inbox.wait`.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from ..errors import StoreError

#: The subdirectory of an inbox that holds these files.
ENDED = "ended"
_VERSION = 1


@attrs.frozen(slots=True, kw_only=True)
class RequestResult:
    """The result of a request."""

    request: str
    #: The outcome of the request: `complete`, `failed`, `cancelled`, ...; `refused` if it was invalid.
    outcome: str
    exit_code: int | None = None
    #: The digest of its output, which another request can mount.
    output: str | None = None
    #: The reason why it was refused, or has failed without a result.
    why: str = ""


def result_path(inbox: Path, request_id: str) -> Path:
    """Return the path for the result of a request."""
    return inbox / ENDED / f"{request_id}.json"


def write_result(result: RequestResult) -> str:
    """Return the content of the file for a result."""
    return json.dumps({"v": _VERSION, **attrs.asdict(result)})


def read_result(path: Path) -> RequestResult | None:
    """Return the result in a file; None if the file does not exist yet.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("v") != _VERSION:
            raise StoreError(f"{path} was written by another version")
        return RequestResult(**document)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise StoreError(f"{path} cannot be read: {e}", e) from e
