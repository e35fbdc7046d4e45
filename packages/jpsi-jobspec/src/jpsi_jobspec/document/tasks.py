"""Reads the parts of a document that run: tasks, groups, and the expressions of names in them."""

from __future__ import annotations

import re

import attrs

from .model import Expression, Group, Needed, Ready, Step, Task, When
from .resources import KEY_ALIASES, read_attributes
from .values import NAME, Entries, Reader, describe_kind
from .yaml_text import Value

_TASK = (
    *("name", "command", "group", "steps", "resources", "requires", "replicas", "depends_on", "local"),
    *("service", "ready", "when", "attributes", "environment"),
)
_GROUP = ("name", "tasks", "commands", "resources", "requires", "depends_on", "attributes", "environment")
_STEPS = ("stage", "write")
_ENDS = ("ok", "any", "failed", "started")


def read_tasks(value: Value, scope: str, reader: Reader) -> tuple[Task, ...]:
    """Return the tasks of a list.

    Args:
        value: the list.
        scope: the name of the group that has them; empty at the top.
        reader: notes problems.
    """
    prefix = f"{scope}-task-" if scope else "task-"
    items = reader.items(value, "JS040")
    return tuple(_read_task(item, prefix, number, reader) for number, item in enumerate(items, 1))


def _read_task(value: Value, prefix: str, number: int, reader: Reader) -> Task:
    entries = reader.mapping(value, "JS040", _TASK, KEY_ALIASES)
    group = entries.get("group")
    name, is_named = _task_name(entries, prefix, number, reader)
    replicas, ready, when = entries.get("replicas"), entries.get("ready"), entries.get("when")
    task = Task(
        name=name,
        is_named=is_named,
        command=_read_command(entries, reader),
        group=None if group is None else reader.name(group),
        steps=_read_steps(entries, reader),
        resources=_read_expression(entries, "resources", reader),
        requires=_read_expression(entries, "requires", reader),
        replicas=1 if replicas is None else reader.count(replicas, "JS042"),
        depends_on=_read_needs(entries, reader),
        is_local=_read_flag(entries, "local", "JS043", reader),
        is_service=_read_flag(entries, "service", "JS040", reader),
        ready=None if ready is None else _read_ready(ready, reader),
        when=None if when is None else _read_when(when, reader),
        attributes=read_attributes(entries, reader),
        at=value.at,
    )
    _check_task(task, entries, reader)
    return _detect_service(task, reader)


def _task_name(entries: Entries, prefix: str, number: int, reader: Reader) -> tuple[str, bool]:
    value, group = entries.get("name"), entries.get("group")
    if value is None:
        is_group = group is not None and isinstance(group.content, str)
        return (str(group.content), True) if group is not None and is_group else (f"{prefix}{number}", False)
    name = reader.name(value)
    if re.fullmatch(rf"{re.escape(prefix)}[0-9]+", name):
        message = f"has the name {name!r}, which jpsi generates for tasks without one"
        reader.findings.add_error("JS013", value.at, message, "choose another name")
    return name, True


def _check_task(task: Task, entries: Entries, reader: Reader) -> None:
    """Note keys of a task that conflict with each other."""
    add_error = reader.findings.add_error
    if ("command" in entries) == (task.group is not None) and (task.group is not None or not task.steps):
        message = (
            "has a command and a group"
            if task.group is not None
            else "has neither command nor group nor steps"
        )
        add_error("JS040", task.at, message, "give it a command, or name a group")
    elif task.group is not None and task.steps:
        add_error("JS040", task.at, "has steps and a group", "move the steps into the group")
    if task.group is not None and task.is_local:
        add_error("JS040", task.at, "is local and names a group", "remove one of the two")
    if task.ready is not None and not task.is_service:
        add_error("JS040", task.ready.at, "is set for what is no service", "add `service: true` to the task")
    if task.replicas > 1 and (task.is_local or task.group is not None):
        what = "local" if task.is_local else "a group"
        add_error("JS042", task.at, f"has replicas, and is {what}, which runs once", "remove replicas")
    if task.is_local and task.resources is not None:
        add_error("JS045", task.at, "is local and has resources", "remove one of the two")


def _detect_service(task: Task, reader: Reader) -> Task:
    words = tuple(task.command[-1].split()) if task.command[:-1] == _SHELL else task.command
    if words != ("sleep", "infinity") or task.is_service:
        return task
    message = "never ends, and is treated as a service: no task waits for its end"
    reader.findings.add_warning("JS040", task.at, message, "write `service: true`")
    return attrs.evolve(task, is_service=True)


def _read_command(entries: Entries, reader: Reader) -> tuple[str, ...]:
    value = entries.found.get("command")
    return () if value is None else read_command(value, reader)


#: The shell that runs a command given as one text; like a batch script with `set -e`, it ends with the first
#: failure.
_SHELL = ("/bin/sh", "-ec")


def read_command(value: Value, reader: Reader) -> tuple[str, ...]:
    """Return the words of a command: a list has them, a shell runs a text, and `#!` begins a script."""
    if isinstance(value.content, list) and value.content:
        words = tuple(reader.text(item, "JS041") for item in value.content)
        if not words[0]:
            reader.findings.add_error("JS041", value.at, "names no program", "begin with the program")
        return words
    if not isinstance(value.content, str) or not value.content.strip() or value.is_ambiguous:
        message = f"must be a text or a list of texts, not {describe_kind(value)}"
        reader.findings.add_error("JS041", value.at, message, 'write `command: ["program", "argument"]`')
        return ()
    if value.content.startswith("#!"):
        return _script_command(value.content)
    return (*_SHELL, value.content)


# The script is written to a temporary file where the task runs: no directory is shared by all hosts.
_RUN_SCRIPT = """\
file=$(mktemp) || exit
trap 'rm -f "$file"' EXIT
printf '%s' "$1" >"$file" && chmod 700 "$file" || exit
"$file"
"""


def _script_command(text: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", _RUN_SCRIPT, "script", text)


def _read_steps(entries: Entries, reader: Reader) -> tuple[Step, ...]:
    value = entries.get("steps")
    return () if value is None else tuple(_read_step(it, reader) for it in reader.items(value, "JS040"))


def _read_step(value: Value, reader: Reader) -> Step:
    entries = reader.mapping(value, "JS040", ("name", "path", "content"), {})
    name, path, content = entries.get("name"), entries.get("path"), entries.get("content")
    if name is None or path is None:
        reader.findings.add_error(
            "JS040", value.at, "needs a name and a path", "write `name: stage` and `path: ...`"
        )
        return Step(name="stage", path="", at=value.at)
    step = Step(
        name=reader.text(name, "JS040"),
        path=reader.text(path, "JS040"),
        content=None if content is None else reader.text(content, "JS040"),
        at=value.at,
    )
    if step.name not in _STEPS or (step.name == "write") != (content is not None):
        message = (
            f"is no step: {step.name!r}" if step.name not in _STEPS else "goes with content or without it"
        )
        reader.findings.add_error(
            "JS040", value.at, message, "write `stage` with a path, or `write` with content, too"
        )
    return step


def _read_expression(entries: Entries, key: str, reader: Reader) -> Expression | None:
    value = entries.get(key)
    return None if value is None else read_expression(value, reader)


def _read_flag(entries: Entries, key: str, code: str, reader: Reader) -> bool:
    value = entries.get(key)
    return value is not None and reader.flag(value, code)


def _read_needs(entries: Entries, reader: Reader) -> tuple[Needed, ...] | None:
    value = entries.get("depends_on")
    if value is None:
        return None
    if isinstance(value.content, str):
        reader.findings.add_warning("JS050", value.at, "is one name", f"write a list: [{value.content}]")
        return (Needed(name=value.content, at=value.at),)
    return tuple(_read_need(item, reader) for item in reader.items(value, "JS050"))


def _read_need(value: Value, reader: Reader) -> Needed:
    if value.content is None:
        reader.findings.add_error(
            "JS053", value.at, "names nothing", "name what is meant, and give it a name"
        )
        return Needed(name="", at=value.at)
    if not isinstance(value.content, dict):
        return Needed(name=reader.text(value, "JS050"), at=value.at)
    entries = reader.mapping(value, "JS050", ("name", "when", "each"), {})
    name, when = entries.get("name"), entries.get("when")
    if name is None:
        reader.findings.add_error("JS053", value.at, "names nothing", "add `name:`")
    end = "ok" if when is None else reader.text(when, "JS050")
    if when is not None and end not in _ENDS:
        reader.findings.add_error("JS050", when.at, f"is {end!r}", f"write one of {', '.join(_ENDS)}")
    has_each = _read_flag(entries, "each", "JS050", reader)
    return Needed(
        name="" if name is None else reader.text(name, "JS050"), when=end, each=has_each, at=value.at
    )


def _read_ready(value: Value, reader: Reader) -> Ready:
    entries = reader.mapping(value, "JS040", ("tcp", "file", "command"), {})
    tcp, file, command = entries.get("tcp"), entries.get("file"), entries.get("command")
    if sum(it is not None for it in (tcp, file, command)) != 1:
        message = "must have one of tcp, file and command"
        reader.findings.add_error(
            "JS040", value.at, message, "write `tcp: host:port`, `file: path` or `command: [...]`"
        )
    return Ready(
        tcp=None if tcp is None else _read_address(tcp, reader),
        file=None if file is None else reader.text(file, "JS040"),
        command=() if command is None else read_command(command, reader),
        at=value.at,
    )


def _read_address(value: Value, reader: Reader) -> str:
    text = reader.text(value, "JS040")
    if not re.fullmatch(r".+:[0-9]{1,5}", text):
        reader.findings.add_error(
            "JS040", value.at, f"is {text!r}", "write `host:port`, as in localhost:6379"
        )
    return text


def _read_when(value: Value, reader: Reader) -> When | None:
    text = reader.text(value, "JS040")
    if text in {it.value for it in When}:
        return When(text)
    hint = f"write one of {', '.join(it.value for it in When)}"
    reader.findings.add_error("JS040", value.at, f"is {text!r}", hint)
    return None


def read_group(value: Value, number: int, reader: Reader) -> Group:
    """Return a group and its tasks; its `commands` run before them."""
    entries = reader.mapping(value, "JS012", _GROUP, KEY_ALIASES)
    name_value, tasks = entries.get("name"), entries.get("tasks")
    name = f"group-{number}" if name_value is None else reader.name(name_value)
    if name_value is None and isinstance(value.content, dict):
        reader.findings.add_error("JS012", value.at, "has no name", "add `name:`")
    listed = () if tasks is None else read_tasks(tasks, name, reader)
    commands = _read_local_commands(entries, name, reader)
    if not commands and not listed and isinstance(value.content, dict):
        reader.findings.add_error("JS040", value.at, "has no tasks", "add `tasks:`")
    return Group(
        name=name,
        tasks=(*commands, *listed),
        resources=_read_expression(entries, "resources", reader),
        requires=_read_expression(entries, "requires", reader),
        depends_on=_read_needs(entries, reader),
        attributes=read_attributes(entries, reader),
        at=value.at,
    )


def _read_local_commands(entries: Entries, name: str, reader: Reader) -> tuple[Task, ...]:
    value = entries.get("commands")
    if value is None:
        return ()
    return tuple(
        Task(
            name=f"{name}-command-{number}",
            is_named=False,
            is_local=True,
            command=read_command(item, reader),
            at=item.at,
        )
        for number, item in enumerate(reader.items(value, "JS041"), 1)
    )


def read_expression(value: Value, reader: Reader) -> Expression | None:
    """Return the expression in a value; `,` means `&`, and a list has alternatives."""
    if isinstance(value.content, list) and value.content:
        parts = [read_expression(item, reader) for item in value.content]
        return Expression(tuple(it for part in parts if part for it in part.alternatives), at=value.at)
    if not isinstance(value.content, str):
        message = f"must be names joined by | and &, not {describe_kind(value)}"
        reader.findings.add_error("JS031", value.at, message, "write a name, a|b or a&b")
        return None
    terms = [re.split(r"[&,]", term) for term in value.content.split("|")]
    alternatives = tuple(tuple(name.strip() for name in names) for names in terms)
    for name in dict.fromkeys(name for names in alternatives for name in names):
        if not NAME.fullmatch(name):
            missing = "a name is missing" if not name else f"{name!r} is no name"
            reader.findings.add_error(
                "JS031", value.at, f"is {value.content!r}, in which {missing}", "write a|b or a&b"
            )
            return None
    return Expression(alternatives, at=value.at)
