"""Implements `jpsi config`: shows the configuration. `jpsi config check` checks if plugins accept it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import jpsi
from jpsi.plugin import Command, NotOffered

from .. import exit_codes, messages

_SHELL = "/bin/sh"


def show(*, as_json: bool) -> int:
    """Show the configuration and return the exit code."""
    found = jpsi.configuration()
    content = {
        "files": [str(path) for path in found.files],
        "default_executor": found.default_executor,
        "plugin_path": [str(path) for path in found.plugin_path],
        "executors": {name: _section(it) for name, it in found.executors.items()},
        "targets": {name: _section(it) for name, it in found.targets.items()},
    }
    if as_json:
        messages.show_json(content)
    else:
        messages.show(_render_yaml(content))
    return 0


def _section(configured: jpsi.Configured) -> dict[str, Any]:
    defaults = {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in configured.defaults.items()
    }
    fields = {
        "executor": configured.executor,
        "url": configured.url,
        "version": configured.version,
        "config": dict(configured.config),
        "defaults": defaults,
    }
    return {name: value for name, value in fields.items() if value}


def _render_yaml(content: Mapping[str, Any]) -> str:
    """Return the configuration as one file would have it, below the names of its files."""
    import yaml  # noqa: PLC0415  the library has it for the files themselves

    files = content["files"] or ["no file"]
    heading = "".join(f"# {messages.printable(path)}\n" for path in files)
    rest = {name: value for name, value in content.items() if name != "files" and value}
    text: str = yaml.safe_dump(rest, sort_keys=False, allow_unicode=True) if rest else ""
    return heading + text


def check(*, as_json: bool) -> int:
    """Check every configured executor and target as for a job, report problems, and return the exit code."""
    found = jpsi.configuration()
    names = dict.fromkeys(filter(None, (*found.targets, *found.executors, found.default_executor)))
    problems = {name: problem for name in names if (problem := _problem(name))}
    if not names and not as_json:
        messages.error(
            "no executor or target is configured; jpsi plugins shows those that need no configuration"
        )
    if as_json:
        content = [{"name": name, "problem": problems.get(name)} for name in names]
        messages.show_json(content)
    else:
        for problem in dict.fromkeys(problems.values()):
            affected = [name for name, other in problems.items() if other == problem]
            messages.error(f"{', '.join(affected)}: {problem}")
        for name in names:
            messages.show("" if name in problems else f"{name}: can be used\n")
    return exit_codes.UNUSABLE if problems else 0


def _problem(name: str) -> str | None:
    """Return why a job could not be submitted, if anything shows it without one.

    It connects to remote hosts, calls the batch system's commands, and checks the simplest job.
    """
    try:
        with jpsi.JobExecutor(name) as executor:
            if executor.system.is_remote:
                executor.system.run(Command([_SHELL, "-c", ":"]))
            version = executor.system.hooks.version(site=executor.system.site())
            if not isinstance(version, NotOffered):
                # of pilots, it imports the engine
                executor.system.query(version).checked()
            with contextlib.suppress(jpsi.SubmitException):
                # an executor without previews, or whose batch system does not answer now, has no problem
                executor.preview(jpsi.Job(jpsi.JobSpec("true")))
    except jpsi.InvalidJobException as e:
        return "; ".join(e.problems)
    except jpsi.JpsiError as e:
        return str(e)
    return None
