"""Prepares a plan from a file and arguments: the only module that reads documents from disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path

from jpsi import InvalidJobException, System, configuration, plugins

from .. import planning
from ..document import NOWHERE, Document, Findings, Position, load, suggest_name
from ..planning import Mapped, Plan, Site, query_system
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
    """Return the document and its findings; raise WorkflowError as `load` does.

    Raises:
        InvalidJobException: options contradict each other, or the file cannot be read.
    """
    check_flags(arguments)
    findings = Findings(arguments.file, arguments.is_strict, arguments.is_lenient)
    parameters = parse_pairs(arguments.parameters, "NAME=VALUE")
    return load(read_text(arguments.file), findings, parameters), findings


def check_flags(arguments: Arguments) -> None:
    """Raise InvalidJobException if options contradict each other."""
    if arguments.is_strict and arguments.is_lenient:
        raise InvalidJobException("--strict and --lenient exclude each other")


def find_site(arguments: Arguments, document: Document | None = None) -> Site:
    """Return the facts about the target; query its queues only if the document leaves a choice."""
    known = configuration()
    target = arguments.executor or known.default_executor or "local"
    section = known.targets.get(target.lower())
    executor = ((section.executor if section is not None else None) or target).lower()
    typed = parse_pairs(arguments.constraints, "SUBSYSTEM.FIELD=OPTION")
    sections = (section, known.executors.get(executor))
    is_remote = any(it is not None and it.url is not None for it in sections)
    is_one_machine = executor == "local"
    has_choice, has_pieces = (False, False) if document is None else _find_choices(document)
    return Site(
        target=target,
        is_one_machine=is_one_machine,
        machine=planning.this_machine() if is_one_machine and not is_remote else None,
        default_duration=query_system(target, _default_duration, None) if executor == "pilot" else None,
        is_remote=is_remote,
        # the directories of this machine are not there on a remote host
        directory=None if is_remote else str(Path(arguments.file).absolute().parent),
        subsystems=known_subsystems(arguments.subsystems),
        is_missing_error=arguments.missing == "fail",
        constraints={
            **planning.configured_constraints(executor),
            **planning.configured_constraints(target.lower()),
            **{name: Mapped(option=it) for name, it in typed.items()},
        },
        is_heterogeneous=has_pieces and query_system(target, _is_heterogeneous, default=False),
        limits=query_system(target, planning.queue_limits, ()) if has_choice else (),
    )


def _default_duration(system: System) -> timedelta | None:
    return system.default_duration


def _is_heterogeneous(system: System) -> bool:
    return system.capabilities.heterogeneous


def _find_choices(document: Document) -> tuple[bool, bool]:
    """Return True if anything names alternatives, and True if a task at the top needs several resources."""
    named = [it.resources.alternatives for it in document.groups.values() if it.resources is not None]
    of_tasks = [it.resources.alternatives for it in document.tasks if it.resources is not None]
    has_pieces = any(len(names) > 1 for alternatives in of_tasks for names in alternatives)
    return any(len(it) > 1 for it in (*named, *of_tasks)), has_pieces


def known_subsystems(directory: str | None) -> planning.Subsystems:
    """Return the subsystems of a directory; raise InvalidJobException if a named directory does not exist."""
    path = Path(directory or planning.SUBSYSTEM_DIRECTORY).expanduser()
    if directory is not None and not path.is_dir():
        raise InvalidJobException(f"{directory} is no directory with subsystems")
    return planning.read_subsystems(path)


def prepare_plan(arguments: Arguments, *, is_to_run: bool = False) -> tuple[Plan, Findings, Site]:
    """Return the plan of a document, its findings, and the site that it was planned for.

    Raises:
        WorkflowError: the document cannot run on the target; with `is_to_run`, also if a package is missing.
    """
    document, findings = load_document(arguments)
    found = find_site(arguments, document)
    plan = planning.draft_plan(document, found, findings)
    if not is_to_run:
        _check_target(found.target, findings)
    add_problem = findings.add_error if is_to_run else findings.add_warning
    launcher = planning.launcher_of(plan.target) if planning.multinode_groups(plan) else ""
    unsupported = planning.find_unsupported_groups(plan, planning.usable_engines(), launcher)
    for name, message, hint in unsupported:
        add_problem("JS092", _find_position(name, document), message, hint)
    findings.check()
    return plan, findings, found


def _check_target(target: str, findings: Findings) -> None:
    """Warn if the target does not exist on this machine; running the document would raise an error."""
    names = target_names()
    if target.lower() not in names:
        message = f"it is planned for {target!r}, and no executor and no target has this name"
        findings.add_warning("JS095", NOWHERE, message, suggest_name(target, names))


def target_names() -> set[str]:
    """Return all names of the executors that are installed, and of the targets that are configured."""
    names = {name for it in plugins() if it.kind == "executor" for name in (it.name, *it.aliases)}
    return {it.lower() for it in (*names, *configuration().targets)}


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
            raise InvalidJobException(f"{word!r} is not {form}")
        found[name] = value
    return found
