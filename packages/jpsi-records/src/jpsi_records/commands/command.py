"""Makes a click command of a Python function: its options, the open records, request files, output, errors.

Every command of `jpsi request` is defined with `command`. In a job only the commands for jobs work, with the
job's inbox instead of the records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from jpsi import JpsiError, parse_duration

from .. import formatting
from ..errors import InvalidRequestError, NotFoundError, SourceError, StateError, store_errors
from ..inbox import Inbox, is_in_job, refuse_in_job
from ..model import About, Request, RequestSpec

if TYPE_CHECKING:
    from ..records import Records

Action = TypeVar("Action", bound=Callable[..., Any])

#: The commands of `jpsi request` by name.
COMMANDS: dict[str, click.Command] = {}

# Exit codes, as in the help text below.
USAGE, FAILED = 2, 125
# The errors that are about what the user has typed, or about a file that the user has named.
_USER_ERRORS = (InvalidRequestError, NotFoundError, SourceError)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_CODES = """\b
Exit codes:
  0  {done}
  2  an error in the command line or the request; nothing was done
  125  jpsi failed
{codes}"""

FILE = click.Argument(["file"], metavar="FILE")
REQUEST = click.Argument(["request"], metavar="REQUEST")
EXECUTION = click.Argument(["execution"], metavar="EXECUTION")
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Write JSON.")
STRICT = click.Option(
    ["--strict", "is_strict"],
    is_flag=True,
    help="Refuse a request if this machine may lack space for its temporary directories.",
)
_LENIENT = click.Option(
    ["--lenient", "is_lenient"], is_flag=True, help="Warn of unknown keys in the file, and ignore them."
)
PRIORITY = click.Option(
    ["--priority"], type=float, default=1.0, show_default=True, help="Higher runs earlier; 0 runs nothing."
)
_EXPIRES = click.Option(
    ["--expires"], metavar="TIME", help="A time, or a duration such as 2h; after it the priority counts as 0."
)
_LABEL = click.Option(
    ["--label", "labels"], multiple=True, metavar="NAME=VALUE", help="A label; may be repeated."
)
#: The options that change the name, the labels and the expiry time of a draft.
CHANGES = (click.Option(["--name"], help="A name to show in lists."), _LABEL, _EXPIRES)
#: The options that describe a new request.
ABOUT = (
    click.Option(["--name"], default="", help="A name to show in lists."),
    _LABEL,
    _EXPIRES,
    click.Option(
        ["--parent"],
        metavar="EXECUTION",
        help="The execution whose child this request is.  [default: in a job, that of the job]",
    ),
)
#: The options that change the placement of a request.
PLACEMENT = (
    click.Option(["-x", "--executor"], metavar="NAME", help="The executor or target, instead of the file's."),
    click.Option(["--time"], metavar="TIME", help="The time limit of the job, such as 10m; 0 is no limit."),
)
_RECORDS = (
    click.Option(
        ["--records", "directory"],
        metavar="DIRECTORY",
        help="The directory of the records.  [default: one in your state directory]",
    ),
    click.Option(["--database"], metavar="URL", help="The database.  [default: a file in that directory]"),
)


@attrs.frozen(slots=True)
class Output:
    """The output of a command, and its exit code."""

    text: str
    #: The output with `--json`; None is the text.
    json: str | None = None
    exit_code: int = 0


def command(  # noqa: PLR0913  the parts of a command
    short: str,
    *params: click.Parameter,
    name: str | None = None,
    done: str = "it was done",
    codes: str = "",
    more: str = "",
    is_for_jobs: bool = False,
    when_empty: Callable[[], Output] | None = None,
) -> Callable[[Action], Action]:
    """Make a command of an action.

    The action gets the records, or in a job the inbox if `is_for_jobs`. It also gets the values of the
    parameters: `file` becomes `spec`, and the options of `ABOUT` become `about`. It returns its output, a
    request to print, or an exit code. If nothing was ever recorded, `when_empty` returns the output instead,
    and no database is loaded.
    """

    def register(action: Action) -> Action:
        def callback(directory: str | None, database: str | None, **options: Any) -> int:  # noqa: ANN401  click's
            try:
                as_json = options.pop("as_json", False)
                is_elsewhere = database is not None or is_in_job()
                if when_empty is not None and not is_elsewhere and not os.path.lexists(_directory(directory)):
                    return _print(None, when_empty(), as_json=as_json)
                with _open(directory, database, is_for_jobs=is_for_jobs) as records:
                    return _print(records, action(records, **_read(options)), as_json=as_json)
            except JpsiError as e:
                click.echo(f"jpsi: {e}", err=True)
                return USAGE if isinstance(e, _USER_ERRORS) else FAILED

        command_name = name or action.__name__
        COMMANDS[command_name] = click.Command(
            command_name,
            params=[*params, *([_LENIENT] if any(it.name == "file" for it in params) else []), *_RECORDS],
            callback=callback,
            context_settings=_SETTINGS,
            short_help=short,
            help=f"{short}\n\n{more}" if more else short,
            epilog=_CODES.format(done=done, codes=codes),
        )
        return action

    return register


def _open(
    directory: str | None, database: str | None, *, is_for_jobs: bool
) -> AbstractContextManager[Records | Inbox]:
    """Open the records that the options name, or the inbox of this job, which no option may name."""
    if is_for_jobs and is_in_job():
        if directory is not None or database is not None:
            msg = "a job makes requests of the records that it belongs to: leave out --records and --database"
            raise StateError(msg)
        return nullcontext(Inbox())
    refuse_in_job()
    from ..records import Records  # noqa: PLC0415  a job must not load the database

    return Records(_directory(directory), url=database)


def _directory(named: str | None) -> Path:
    """Return the directory of the records that the option names, or the default."""
    if named is not None:
        with store_errors(f"--records {named} cannot be used", InvalidRequestError):
            if Path(named).exists() and not Path(named).is_dir():
                raise InvalidRequestError(f"--records {named} is no directory")
        return Path(named)
    from platformdirs import user_state_path  # noqa: PLC0415  rarely needed

    return user_state_path("jpsi") / "records"


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the request spec and the description that they give."""
    if "parent" in options:
        about = {it: options.pop(it) for it in ("name", "parent")}
        about |= {
            "labels": read_labels(options.pop("labels")),
            "expires_at": read_expiry(options.pop("expires")),
        }
        options["about"] = About(**about)
    if "file" in options:
        from .request_file import read_file  # noqa: PLC0415  slow to import

        file, is_lenient = options.pop("file"), options.pop("is_lenient")
        options["spec"] = None if file is None else read_file(file, is_lenient=is_lenient)
    if "executor" in options:
        options["spec"] = _place(options["spec"], options.pop("executor"), options.pop("time"))
    return options


def _place(spec: RequestSpec, executor: str | None, time: str | None) -> RequestSpec:
    """Return a request spec with the executor and time limit of the options, where these are given."""
    placement = spec.placement
    if executor is not None:
        placement = attrs.evolve(placement, executor=executor)
    if time is not None:
        try:
            placement = attrs.evolve(placement, duration=parse_duration(time).total_seconds())
        except ValueError as e:
            raise InvalidRequestError(f"--time: {e}", e) from e
    return attrs.evolve(spec, placement=placement)


def dispatch_command(records: Records) -> str:
    """Return the command that starts a dispatcher of the records that the options of this command name."""
    from jpsi.plugin import line  # noqa: PLC0415  with the registry of plugins

    context = click.get_current_context(silent=True)
    typed = {} if context is None else context.params
    directory = [] if typed.get("directory") is None else ["--records", str(typed["directory"])]
    database = [] if typed.get("database") is None else ["--database", _without_password(records)]
    return line("jpsi", "request", "dispatch", *directory, *database)


def _without_password(records: Records) -> str:
    """Return the URL of the database of records; libpq takes a password from other places as well."""
    url = records.database.engine.url._replace(password=None)
    return url.difference_update_query(["password"]).render_as_string()


def _print(records: Any, result: Output | Request | int, *, as_json: bool) -> int:  # noqa: ANN401  see `command`
    if isinstance(result, Request):
        execution = None if result.execution is None else records.execution(result.execution)
        if execution is not None and not as_json:
            click.echo(f"jpsi: {formatting.assigned(execution)}", err=True)
        result = Output(f"{result.id}\n", formatting.as_json(result))
    if isinstance(result, int):
        return result
    click.echo(result.json if as_json and result.json is not None else result.text, nl=False)
    return result.exit_code


def read_labels(labels: Iterable[str]) -> dict[str, str]:
    """Return the labels that the options give.

    Raises:
        InvalidRequestError: an option is not of the form NAME=VALUE.
    """
    parsed = dict(it.partition("=")[::2] for it in labels)
    if not all(parsed):
        raise InvalidRequestError("a label is NAME=VALUE")
    return parsed


def read_expiry(text: str | None) -> datetime | None:
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
        raise InvalidRequestError(f"--expires is a time or a duration, not {text!r}", e) from e
    return datetime.now(UTC) + duration
