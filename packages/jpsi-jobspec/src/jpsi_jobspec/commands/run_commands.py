"""The commands that run documents: run, wait and cancel."""

from __future__ import annotations

from collections.abc import Collection

from jpsi import InvalidJobException, parse_duration

from ..planning import Plan, Site
from ..run_store import Journal, RunRequest, create_run, find_completed, latest_run, locked_runs, plan_request
from ..running import EXIT_DONE, check_jobs, render_names
from .arguments import Arguments
from .continuation import check_ended, check_same, explain_again, repeat_options
from .foreground import Waiting, drive_run
from .messages import print_errors, print_warnings
from .preparation import parse_pairs, prepare_plan, read_text
from .selection import last_run, select_entries


def run(arguments: Arguments, *, is_new: bool, is_failed: bool, as_json: bool) -> int:
    """Run a document, or go on with its last run, and return the exit code."""
    if is_new and is_failed:
        raise InvalidJobException("--again and --failed exclude each other")
    text = read_text(arguments.file)
    # if two processes begin at the same time, one goes on with the run of the other
    with locked_runs(arguments.file):
        last = latest_run(arguments.file)
        if is_failed:
            chosen = _repeat_failed(last_run(arguments.file), text, arguments)
        elif last is None or is_new:
            check_ended(last, arguments)
            chosen = _begin_run(text, arguments)
        else:
            check_same(last, text, arguments)
            chosen = last
            if last.is_over:
                print_errors([f"the last run of {arguments.file} is over; {explain_again(last)}"])
    return drive_run(chosen, Waiting(file=arguments.file, as_json=as_json))


def _begin_run(text: str, arguments: Arguments) -> Journal:
    """Create a run of which every job can be submitted."""
    plan, site = _checked_plan(arguments)
    print_warnings(check_jobs(plan))
    return create_run(arguments.file, text, site, parse_pairs(arguments.parameters, "NAME=VALUE"))


def _checked_plan(arguments: Arguments) -> tuple[Plan, Site]:
    plan, findings, site = prepare_plan(arguments, is_to_run=True)
    print_warnings(findings.warnings)
    return plan, site


def _repeat_failed(last: Journal, text: str, arguments: Arguments) -> Journal:
    """Create a run in which what completed in the last one does not run again; or return that if all did."""
    check_ended(last, arguments)
    options = repeat_options(last, text, arguments)
    plan, site = _checked_plan(options)
    parameters = parse_pairs(options.parameters, "NAME=VALUE")
    request = RunRequest(source=arguments.file, text=text, parameters=parameters, site=site)
    completed = find_completed(last, plan_request(request))
    if len(completed.names) == len(plan.entries):
        print_errors([f"all tasks completed in the last run of {arguments.file}; {explain_again(last)}"])
        return last
    print_warnings(check_jobs(plan))
    if names := completed.completed_names:
        print_errors([f"completed in the run before, and not run again: {render_names(names)}"])
    return create_run(arguments.file, text, site, parameters, completed)


def wait(arguments: Arguments, *, tasks: Collection[str], timeout: str | None, as_json: bool) -> int:
    """Wait for the end of the last run, or of some of its entries, and return the exit code."""
    try:
        limit = None if timeout is None else parse_duration(timeout)
    except ValueError as e:
        raise InvalidJobException(f"--timeout: {e}", e) from e
    last = last_run(arguments.file)
    entries = select_entries(tasks, last) or None
    return drive_run(last, Waiting(file=arguments.file, entries=entries, limit=limit, as_json=as_json))


def cancel(arguments: Arguments, *, tasks: Collection[str]) -> int:
    """Cancel the last run, or some of its entries, and return the exit code."""
    last = last_run(arguments.file)
    entries = select_entries(tasks, last)
    if all(it.state.final for it in (entries.parts(last) if entries else last.all_parts())):
        whole = f"the last run of {arguments.file}"
        left = f"{', '.join(tasks)}: nothing is left to cancel in {whole}"
        print_errors([left if tasks else f"{whole} is over; nothing is left to cancel"])
        return EXIT_DONE
    if not entries:
        last.cancel()
        drive_run(last, Waiting(file=arguments.file, is_reporting=False))
        return EXIT_DONE
    ending = entries.cancel(last)
    for group in entries.inside.keys() - ending.inside.keys():
        print_errors([f"{group} has not begun; once it does, what was cancelled does not run in it"])
    if ending:
        expectation = f"it will cancel {', '.join(tasks)}"
        options = Waiting(file=arguments.file, entries=ending, expectation=expectation, is_reporting=False)
        drive_run(last, options)
        last.read_new_events()
        print_errors([f"cancelled: {', '.join(ending.cancelled(last)) or 'nothing, all had ended'}"])
    return EXIT_DONE
