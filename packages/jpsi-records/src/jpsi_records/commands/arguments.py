"""Command-line arguments: opening of the records or inbox, and parsing of request files and options."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jpsi import JpsiError, parse_duration

from ..errors import InvalidRequestError, NotFoundError, StateError
from ..inbox import Inbox, refuse_in_job
from ..model import About, RequestSpec, read_request_spec

if TYPE_CHECKING:
    from ..records import Records

USAGE, FAILED = 2, 125


def open_records(directory: str | None, database: str | None) -> Records:
    """Open the records that the options name; by default, those in the user's state directory."""
    refuse_in_job()
    from ..records import Records  # noqa: PLC0415  a job does not need it

    if directory is None:
        from platformdirs import user_state_path  # noqa: PLC0415  rarely needed

        return Records(user_state_path("jpsi") / "records", url=database)
    return Records(directory, url=database)


def inbox(directory: str | None, database: str | None) -> Inbox:
    """Open the inbox of this job, which no option may name.

    Raises:
        StateError: an option names records.
    """
    if directory is not None or database is not None:
        msg = "a job makes requests of the records that it belongs to: leave out --records and --database"
        raise StateError(msg)
    return Inbox()


def report_errors(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; print known errors as one sentence."""
    try:
        return command()
    except (InvalidRequestError, NotFoundError) as e:
        click.echo(f"jpsi: {e}", err=True)
        return USAGE
    except JpsiError as e:
        click.echo(f"jpsi: {e}", err=True)
        return FAILED


def read_file(file: str) -> RequestSpec:
    """Return the request spec in a YAML or JSON file; `-` is standard input.

    Raises:
        InvalidRequestError: the file cannot be read, or is no valid request.
    """
    import yaml  # noqa: PLC0415  slow to import

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        document = json.loads(text) if file.endswith(".json") else yaml.safe_load(text)
    except (OSError, UnicodeError, ValueError, yaml.YAMLError) as e:
        msg = f"{file} cannot be read: {e}"
        raise InvalidRequestError(msg, e) from e
    return read_request_spec(document)


def about(
    *, name: str, labels: Iterable[str], expires: str | None, parent: str | None, now: datetime | None = None
) -> About:
    """Return the name, labels, expiry time and parent that the options give.

    Raises:
        InvalidRequestError: an option is invalid.
    """
    expires_at = moment(expires, now or datetime.now(UTC))
    return About(name=name, labels=read_labels(labels), expires_at=expires_at, parent=parent)


def read_labels(labels: Iterable[str]) -> dict[str, str]:
    """Return the labels that the options give.

    Raises:
        InvalidRequestError: an option is not of the form NAME=VALUE.
    """
    parsed = dict(it.partition("=")[::2] for it in labels)
    if not all(parsed):
        msg = "a label is NAME=VALUE"
        raise InvalidRequestError(msg)
    return parsed


def moment(text: str | None, now: datetime) -> datetime | None:
    """Return the time in a text: a time, such as 2030-01-01T00:00, or a duration from now, such as 2h."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        pass
    try:
        duration: timedelta = parse_duration(text)
    except ValueError as e:
        msg = f"--expires is a time or a duration, not {text!r}"
        raise InvalidRequestError(msg, e) from e
    return now + duration
