"""The commands of `jpsi request`: their arguments, options and help texts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_CODES = """\b
Exit codes:
  0  {done}
  2  a mistake in the command line or the request; nothing was done
  125  jpsi failed
{codes}"""
_RUN_CODES = """\
  1  the job has reported a failure, though its exit code is 0
  130  the request was cancelled, or the waiting was interrupted (the job goes on)
Any other, and each of these as well, may be the exit code of the computation.
"""
_FILE = click.Argument(["file"], metavar="FILE")
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Write JSON.")
_STRICT = click.Option(
    ["--strict", "is_strict"], is_flag=True, help="Refuse what may lack room for a temporary directory."
)
_PRIORITY = click.Option(
    ["--priority"], type=float, default=1.0, show_default=True, help="How urgent it is; 0 lets nothing run."
)
_WHERE = (
    click.Option(
        ["--records", "directory"], metavar="DIRECTORY", help="Where files are kept.  [default: one of yours]"
    ),
    click.Option(["--database"], metavar="URL", help="The database.  [default: a file in that directory]"),
)
_ABOUT = (
    click.Option(["--name"], default="", help="What lists call it."),
    click.Option(
        ["--label", "labels"], multiple=True, metavar="NAME=VALUE", help="A label; may be repeated."
    ),
    click.Option(["--expires"], metavar="TIME", help="When nobody wants it any more: a time, or as 2h."),
    click.Option(
        ["--parent"], metavar="EXECUTION", help="Whose child it is.  [default: in a job, the job's own]"
    ),
)


def _command(  # noqa: PLR0913  the parts of a command
    name: str,
    do: Callable[..., int],
    short: str,
    params: tuple[click.Parameter, ...],
    *,
    done: str = "it was done",
    codes: str = "",
    more: str = "",
    is_for_jobs: bool = False,
) -> click.Command:
    @functools.wraps(do)
    def callback(directory: str | None, database: str | None, **given: Any) -> int:  # noqa: ANN401  click's
        from ..inbox import is_in_job  # noqa: PLC0415  --help does not need this import
        from .arguments import inbox, open_records, report_errors  # noqa: PLC0415  as above

        def command() -> int:
            if is_for_jobs and is_in_job():
                return do(inbox(directory, database), **given)
            with open_records(directory, database) as records:
                return do(records, **given)

        return report_errors(command)

    return click.Command(
        name,
        params=[*params, *_WHERE],
        callback=callback,
        context_settings=_SETTINGS,
        short_help=short,
        help=f"{short}\n\n{more}" if more else short,
        epilog=_CODES.format(done=done, codes=codes),
    )


def _actions_for(door: Any) -> Any:  # noqa: ANN401  modules
    """Return the module of the actions on records, or that of the actions on a job's inbox."""
    from ..inbox import Inbox  # noqa: PLC0415  as above

    if isinstance(door, Inbox):
        from . import in_job  # noqa: PLC0415  as above

        return in_job
    from . import actions  # noqa: PLC0415  as above

    return actions


def _with_request_spec(name: str, **given: Any) -> Callable[..., int]:  # noqa: ANN401  click's
    """Return a callback that reads a request file and calls the named action."""

    def do(door: Any, file: str, **options: Any) -> int:  # noqa: ANN401  as above
        from .arguments import about, read_file  # noqa: PLC0415

        if "labels" in options:
            said = {key: options.pop(key) for key in ("name", "labels", "expires", "parent")}
            options["more"] = about(**said)
        code: int = getattr(_actions_for(door), name)(door, read_file(file), **options, **given)
        return code

    return do


def _update(  # noqa: PLR0913  options
    door: Any,  # noqa: ANN401  as above
    request: str,
    file: str | None,
    *,
    name: str | None,
    labels: tuple[str, ...],
    expires: str | None,
    as_json: bool,
) -> int:
    from datetime import UTC, datetime  # noqa: PLC0415  as above

    from . import actions  # noqa: PLC0415  as above
    from .arguments import moment, read_file, read_labels  # noqa: PLC0415

    spec = None if file is None else read_file(file)
    expires_at = moment(expires, datetime.now(UTC))
    return actions.update(
        door, request, spec, name=name, labels=read_labels(labels), expires_at=expires_at, as_json=as_json
    )


def _without_file(name: str) -> Callable[..., int]:
    """Return a callback that calls the named action."""

    def do(door: Any, **options: Any) -> int:  # noqa: ANN401  click's
        code: int = getattr(_actions_for(door), name)(door, **options)
        return code

    return do


def _progress(
    door: Any,  # noqa: ANN401  as above
    execution: str,
    value: float | None,
    *,
    is_success: bool,
    failure: str | None,
) -> int:
    from ..errors import InvalidRequestError  # noqa: PLC0415  as above
    from ..inbox import Report  # noqa: PLC0415  as above

    if (value is None and not is_success and failure is None) or (is_success and failure is not None):
        msg = "say a number from 0 to 1, and one of --success and --failure, or one of these"
        raise InvalidRequestError(msg)
    if value is not None and not 0 <= value <= 1:
        msg = f"progress is a number from 0 to 1, not {value}"
        raise InvalidRequestError(msg)
    reported = None if failure is None and not is_success else is_success
    report = Report(reported, failure or "")
    code: int = _actions_for(door).progress(door, execution, value, report)
    return code


_STATE = click.Choice(["draft", "committed", "final"])
_EXECUTION = click.Argument(["execution"], metavar="EXECUTION")
_REQUEST = click.Argument(["request"], metavar="REQUEST")

#: `jpsi request`
REQUEST = click.Group(
    "request",
    context_settings=_SETTINGS,
    short_help="Ask for results; run only what is not there yet.",
    help="""Ask for results; run only what is not there yet.

    A request is a file in YAML or JSON that says what is to be computed, from what. If an execution of the
    same content is there, its result is the answer; else a job is run.
    """,
    commands={
        it.name or "": it
        for it in (
            _command(
                "preview",
                _with_request_spec("preview"),
                "Tell what would come of a request; nothing is written.",
                (_FILE, _STRICT, _JSON),
                done="it was told",
                more="Which execution satisfies it; or what would run, and what comes close.",
            ),
            _command(
                "submit",
                _with_request_spec("submit"),
                "Make a request, and return at once.",
                (
                    _FILE,
                    *_ABOUT,
                    _PRIORITY,
                    click.Option(["--plan"], metavar="ID", help="Only if this preview holds."),
                    _STRICT,
                    _JSON,
                ),
                done="the request was made",
                more="In a job of a request it is left where whoever sees to that job takes it in.",
                is_for_jobs=True,
            ),
            _command(
                "run",
                _with_request_spec("run"),
                "Make a request, wait for its end, and exit with its exit code.",
                (_FILE, *_ABOUT, _PRIORITY, _STRICT),
                done="the computation has ended well, now or earlier",
                codes=_RUN_CODES,
            ),
            _command(
                "wait",
                _without_file("wait"),
                "Wait for requests to end, which a dispatcher sees to.",
                (
                    click.Argument(["requests"], metavar="REQUEST...", nargs=-1, required=True),
                    click.Option(["--timeout"], type=float, metavar="SECONDS", help="No longer than that."),
                ),
                done="all of them are complete (1: not all; 124: not in this time)",
                more="In a job it waits for requests that the job has made.",
                is_for_jobs=True,
            ),
            _command(
                "find",
                _with_request_spec("find"),
                "Tell which execution satisfies a request already; nothing is written.",
                (_FILE, _JSON),
                done="there is one (1: there is none)",
            ),
            _command(
                "attach",
                _with_request_spec("attach"),
                "Make a request that is satisfied by the execution of your choice.",
                (_FILE, _EXECUTION, *_ABOUT, _PRIORITY, _JSON),
            ),
            _command(
                "draft",
                _with_request_spec("draft"),
                "Make a request that causes nothing until it is committed.",
                (_FILE, *_ABOUT, _JSON),
                done="the draft was made",
            ),
            _command(
                "update",
                _update,
                "Change what a draft says; if it wants something else then, it has no execution any more.",
                (
                    _REQUEST,
                    click.Argument(["file"], metavar="[FILE]", required=False),
                    click.Option(["--name"], help="What lists call it."),
                    click.Option(["--label", "labels"], multiple=True, metavar="NAME=VALUE", help="A label."),
                    click.Option(["--expires"], metavar="TIME", help="When nobody wants it any more."),
                    _JSON,
                ),
            ),
            _command(
                "satisfy",
                _without_file("satisfy"),
                "Find an execution that satisfies a draft, or create one; nothing runs yet.",
                (_REQUEST, _JSON),
            ),
            _command(
                "reset",
                _without_file("reset"),
                "Let a draft have no execution again.",
                (_REQUEST, _JSON),
            ),
            _command(
                "commit",
                _without_file("commit"),
                "Commit a draft: from now on it has an execution, which runs.",
                (_REQUEST, _PRIORITY, _JSON),
            ),
            _command(
                "rerun",
                _without_file("rerun"),
                "Compute exactly the same again.",
                (_EXECUTION, _PRIORITY, _JSON),
            ),
            _command(
                "dispatch",
                _without_file("dispatch"),
                "Run what is wanted, until you interrupt it.",
                (click.Option(["--until-idle"], is_flag=True, help="Return once nothing is left to run."),),
                done="nothing is left to run",
                more="Whenever it ends, or is killed, the next one finds the jobs.",
            ),
            _command(
                "ls",
                _without_file("ls"),
                "List your requests.",
                (
                    click.Option(["--all", "is_all"], is_flag=True, help="Everybody's."),
                    click.Option(["--state"], type=_STATE, help="Those in this state alone."),
                    _JSON,
                ),
            ),
            _command(
                "show",
                _without_file("show"),
                "Tell everything about a request or an execution.",
                (click.Argument(["subject"], metavar="ID"), _JSON),
            ),
            _command(
                "explain",
                _without_file("explain"),
                "Tell why a request has the execution that it has.",
                (_REQUEST,),
            ),
            _command(
                "priority",
                _without_file("set_priority"),
                "Change the priority of a request.",
                (_REQUEST, click.Argument(["priority"], type=float), _JSON),
            ),
            _command(
                "cancel",
                _without_file("cancel"),
                "Set the priority to 0: nothing runs for it any more; others may still want the same.",
                (_REQUEST, _JSON),
            ),
            _command(
                "invalidate",
                _without_file("invalidate"),
                "Let an execution satisfy nobody any more.",
                (_EXECUTION, click.Option(["--why"], default="", help="What is wrong with it.")),
            ),
            _command(
                "progress",
                _progress,
                "Say how much of a running execution is done, from 0 to 1, or that it succeeds or fails.",
                (
                    _EXECUTION,
                    click.Argument(["value"], type=click.FloatRange(0, 1), required=False),
                    click.Option(["--success", "is_success"], is_flag=True, help="It succeeds."),
                    click.Option(["--failure"], metavar="WHY", help="It fails, whatever its exit code is."),
                ),
                more="In a job of a request EXECUTION is $JPSI_EXECUTION.",
                is_for_jobs=True,
            ),
            _command(
                "put",
                _without_file("put"),
                "Keep a file or directory as a collection; its digest is written.",
                (
                    click.Argument(["path"], metavar="PATH"),
                    click.Option(["--name"], help="What stands for it from now on."),
                ),
            ),
            _command(
                "get",
                _without_file("get"),
                "Write a collection, such as an output, into a directory.",
                (
                    click.Argument(["digest"], metavar="DIGEST"),
                    click.Argument(["target"], metavar="DIRECTORY"),
                ),
            ),
            _command(
                "reindex",
                _without_file("restore"),
                "Make the database again from what is beside the files of jobs.",
                (),
            ),
            _command(
                "serve",
                _without_file("serve"),
                "Show requests and executions in your browser, until you interrupt it.",
                (
                    click.Option(
                        ["--port"],
                        type=click.IntRange(0, 65535),
                        default=0,
                        help="Of this machine.  [default: any that is free]",
                    ),
                ),
                done="it was interrupted",
                more="It prints a link. Whoever has it, on this machine, sees what you see of the records.",
            ),
            _command(
                "usage",
                _without_file("usage"),
                "List who wanted what, with which priority, from when to when.",
                (
                    click.Option(["--execution"], metavar="ID", help="Of one execution."),
                    click.Option(["--user"], metavar="NAME", help="Of one user."),
                    _JSON,
                ),
            ),
        )
    },
)
