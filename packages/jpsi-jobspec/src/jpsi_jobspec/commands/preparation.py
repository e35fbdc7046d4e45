"""Prepares a plan from a file and arguments: the only module that reads documents from disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from jpsi import InvalidJobException, configuration, plugins

from ..document import NOWHERE, Document, Findings, Position, load, suggest_name
from ..planning import (
    SUBSYSTEM_DIRECTORY,
    Mapped,
    Plan,
    Site,
    Subsystems,
    configured_constraints,
    default_duration,
    draft_plan,
    find_unsupported_groups,
    has_choice,
    has_pieces,
    launcher_of,
    multinode_groups,
    queue_limits,
    read_subsystems,
    supports_heterogeneous_jobs,
    this_machine,
    usable_engines,
)
from .arguments import Arguments


def read_text(file: str) -> str:
    """Return the text of a document.

    Raises:
        InvalidJobException: the file cannot be read.
    """
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        msg = f"{file} cannot be read: {e.strerror if isinstance(e, OSError) else 'it is no UTF-8 text'}"
        raise InvalidJobException(msg, e) from e


def load_document(arguments: Arguments) -> tuple[Document, Findings]:
    """Return the document and its findings; raise WorkflowError as `load` does."""
    findings = Findings(arguments.file, arguments.is_strict)
    return load(
        read_text(arguments.file), findings, parse_pairs(arguments.parameters, "NAME=VALUE")
    ), findings


def find_site(arguments: Arguments, document: Document | None = None) -> Site:
    """Return the facts about the target; query its queues only if the document leaves a choice."""
    known = configuration()
    target = arguments.executor or known.default_executor or "local"
    section = known.targets.get(target.lower())
    executor = (section.executor if section is not None else None) or target
    sections = (section, known.executors.get(executor.lower()))
    typed = parse_pairs(arguments.constraints, "SUBSYSTEM.FIELD=OPTION")
    is_remote = any(it is not None and it.url is not None for it in sections)
    is_one_machine = executor.lower() == "local"
    return Site(
        target=target,
        is_one_machine=is_one_machine,
        machine=this_machine() if is_one_machine and not is_remote else None,
        default_duration=default_duration(target) if executor.lower() == "pilot" else None,
        is_remote=is_remote,
        subsystems=known_subsystems(arguments.subsystems),
        is_missing_error=arguments.missing == "fail",
        constraints={
            **configured_constraints(executor.lower()),
            **configured_constraints(target.lower()),
            **{name: Mapped(option=it) for name, it in typed.items()},
        },
        is_heterogeneous=document is not None
        and has_pieces(document)
        and supports_heterogeneous_jobs(target),
        limits=queue_limits(target) if document is not None and has_choice(document) else (),
    )


def known_subsystems(directory: str | None) -> Subsystems:
    """Return the subsystems of a directory; raise InvalidJobException if a named directory does not exist."""
    path = Path(directory or SUBSYSTEM_DIRECTORY).expanduser()
    if directory is not None and not path.is_dir():
        msg = f"{directory} is no directory with subsystems"
        raise InvalidJobException(msg)
    return read_subsystems(path)


def plan_document(arguments: Arguments) -> tuple[Plan, Findings]:
    """Return the plan of a document and its findings; raise WorkflowError if it cannot run on the target."""
    plan, findings, _ = prepare_plan(arguments)
    return plan, findings


def prepare_plan(arguments: Arguments, *, is_to_run: bool = False) -> tuple[Plan, Findings, Site]:
    """Return the plan of a document, its findings, and the site that it was planned for.

    Raises:
        WorkflowError: the document cannot run on the target; with `is_to_run`, also if a package is missing.
    """
    document, findings = load_document(arguments)
    found = find_site(arguments, document)
    plan = draft_plan(document, found, findings)
    if not is_to_run:
        _check_target(found.target, findings)
    add_problem = findings.add_error if is_to_run else findings.add_warning
    launcher = launcher_of(plan.target) if multinode_groups(plan) else ""
    for name, message, hint in find_unsupported_groups(plan, usable_engines(), launcher):
        add_problem("JS092", _find_position(name, document), message, hint)
    findings.check()
    return plan, findings, found


def _check_target(target: str, findings: Findings) -> None:
    """Warn if the target does not exist on this machine; running the document would raise an error."""
    names = {name for it in plugins() if it.kind == "executor" for name in (it.name, *it.aliases)}
    names |= configuration().targets.keys()
    if target.lower() not in {it.lower() for it in names}:
        message = f"it is planned for {target!r}, and no executor and no target has this name"
        findings.add_warning("JS095", NOWHERE, message, suggest_name(target, names))


def _find_position(name: str, document: Document) -> Position:
    """Return the position of the group, or of the task with replicas, that has this name in the plan."""
    task = next((it for it in document.tasks if it.name == name), None)
    group = document.groups.get(name if task is None or task.group is None else task.group)
    it = group or task
    return NOWHERE if it is None else it.at


def parse_pairs(words: Iterable[str], form: str) -> Mapping[str, str]:
    """Return the values in `NAME=VALUE` words by their names."""
    found = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            msg = f"{word!r} is not {form}"
            raise InvalidJobException(msg)
        found[name] = value
    return found
