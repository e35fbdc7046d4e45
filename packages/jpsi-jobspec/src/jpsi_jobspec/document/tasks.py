"""Reads the parts of a document that run: tasks, groups, and the expressions of names in them.

The loader uses it; problems are noted, and the rest is read all the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import attrs

from .model import Expression, Group, Needed, Ready, Step, Task, When
from .resources import read_attributes
from .values import NAME, Entries, Value

_TASK = (
    *("name", "command", "group", "steps", "resources", "requires", "replicas", "depends_on", "local"),
    *("service", "ready", "when", "attributes", "environment"),
)
_GROUP = ("name", "tasks", "commands", "resources", "requires", "depends_on", "attributes", "environment")
_STEPS = ("stage", "write")
_ENDS = ("ok", "any", "failed", "started")


def read_tasks(value: Value, scope: str) -> tuple[Task, ...]:
    """Return the tasks of a list; `scope` is the name of the group that has them, empty at the top."""
    prefix = f"{scope}-task-" if scope else "task-"
    items = value.as_items("JS040")
    return tuple(_read_task(item, prefix, number) for number, item in enumerate(items, 1))


def _read_task(value: Value, prefix: str, number: int) -> Task:
    entries = value.as_mapping("JS040", _TASK)
    name, is_named = _task_name(entries, prefix, number)
    when = entries.read("when", _read_word, [it.value for it in When], "JS040")
    task = Task(
        name=name,
        is_named=is_named,
        command=read_command(entries["command"]) if "command" in entries else (),
        group=entries.read("group", Value.as_name),
        steps=tuple(map(_read_step, entries.read("steps", Value.as_items, "JS040") or ())),
        resources=entries.read("resources", read_expression),
        requires=entries.read("requires", read_expression),
        replicas=entries.read("replicas", Value.as_count, "JS042") or 1,
        depends_on=entries.read("depends_on", _read_needs),
        is_local=bool(entries.read("local", Value.as_flag, "JS043")),
        is_service=bool(entries.read("service", Value.as_flag, "JS040")),
        ready=entries.read("ready", _read_ready),
        when=None if when is None else When(when),
        attributes=read_attributes(entries),
        at=value.at,
    )
    _check_task(value, task, entries)
    return _detect_service(value, task)


def _task_name(entries: Entries, prefix: str, number: int) -> tuple[str, bool]:
    value, group = entries.find("name"), entries.find("group")
    if value is None:
        if group is not None and isinstance(group.content, str):
            return group.content, True
        return f"{prefix}{number}", False
    name = value.as_name()
    if re.fullmatch(rf"{re.escape(prefix)}[0-9]+", name):
        message = f"has the name {name!r}, which jpsi generates for tasks without one"
        value.error("JS013", message, "choose another name")
    return name, True


def _check_task(value: Value, task: Task, entries: Entries) -> None:
    """Note keys of a task that conflict with each other."""
    has_group, has_command = task.group is not None, "command" in entries
    if has_command == has_group and (has_group or not task.steps):
        message = "has a command and a group" if has_group else "has neither command nor group nor steps"
        value.error("JS040", message, "give it a command, or name a group")
    elif has_group and task.steps:
        value.error("JS040", "has steps and a group", "move the steps into the group")
    if has_group and task.is_local:
        value.error("JS040", "is local and names a group", "remove one of the two")
    if task.ready is not None and not task.is_service:
        entries["ready"].error("JS040", "is set for what is no service", "add `service: true` to the task")
    if task.replicas > 1 and (task.is_local or has_group):
        kind = "local" if task.is_local else "a group"
        value.error("JS042", f"has replicas, and is {kind}, which runs once", "remove replicas")
    if task.is_local and task.resources is not None:
        value.error("JS045", "is local and has resources", "remove one of the two")


def _detect_service(value: Value, task: Task) -> Task:
    words = tuple(task.command[-1].split()) if task.command[:-1] == _SHELL else task.command
    if words != ("sleep", "infinity") or task.is_service:
        return task
    message = "never ends, and is treated as a service: no task waits for its end"
    value.warn("JS040", message, "write `service: true`")
    return attrs.evolve(task, is_service=True)


#: The shell that runs a command given as one text; like a batch script with `set -e`, it ends with the first
#: failure.
_SHELL = ("/bin/sh", "-ec")
# The script is written to a temporary file where the task runs: no directory is shared by all hosts.
_RUN_SCRIPT = """\
file=$(mktemp) || exit
trap 'rm -f "$file"' EXIT
printf '%s' "$1" >"$file" && chmod 700 "$file" || exit
"$file"
"""


def read_command(value: Value) -> tuple[str, ...]:
    """Return the words of a command: a list has them, a shell runs a text, and `#!` begins a script."""
    if isinstance(value.content, list) and value.content:
        words = tuple(item.as_text("JS041") for item in value.content)
        if not words[0]:
            value.error("JS041", "names no program", "begin with the program")
        return words
    if not isinstance(value.content, str) or not value.content.strip() or value.is_ambiguous:
        value.must_be("a text or a list of texts", "JS041", 'write `command: ["program", "argument"]`')
        return ()
    if value.content.startswith("#!"):
        return ("/bin/sh", "-c", _RUN_SCRIPT, "script", value.content)
    return (*_SHELL, value.content)


def _read_step(value: Value) -> Step:
    entries = value.as_mapping("JS040", ("name", "path", "content"))
    if entries.find("name") is None or entries.find("path") is None:
        value.error("JS040", "needs a name and a path", "write `name: stage` and `path: ...`")
        return Step(name="stage", path="", at=value.at)
    step = Step(
        name=entries["name"].as_text("JS040"),
        path=entries["path"].as_text("JS040"),
        content=entries.read("content", Value.as_text, "JS040"),
        at=value.at,
    )
    hint = "write `stage` with a path, or `write` with content, too"
    if step.name not in _STEPS:
        value.error("JS040", f"is no step: {step.name!r}", hint)
    elif (step.name == "write") != (step.content is not None):
        value.error("JS040", "goes with content or without it", hint)
    return step


def _read_needs(value: Value) -> tuple[Needed, ...]:
    if isinstance(value.content, str):
        value.warn("JS050", "is one name", f"write a list: [{value.content}]")
        return (Needed(name=value.content, at=value.at),)
    return tuple(map(_read_need, value.as_items("JS050")))


def _read_need(value: Value) -> Needed:
    if value.content is None:
        value.error("JS053", "names nothing", "name what is meant, and give it a name")
        return Needed(name="", at=value.at)
    if not isinstance(value.content, dict):
        return Needed(name=value.as_text("JS050"), at=value.at)
    entries = value.as_mapping("JS050", ("name", "when", "each"))
    if entries.find("name") is None:
        value.error("JS053", "names nothing", "add `name:`")
    return Needed(
        name=entries.read("name", Value.as_text, "JS050") or "",
        when=entries.read("when", _read_word, _ENDS, "JS050") or "ok",
        each=bool(entries.read("each", Value.as_flag, "JS050")),
        at=value.at,
    )


def _read_word(value: Value, known: Collection[str], code: str) -> str | None:
    """Return one of the known words; None, with a note, if the value is none of them."""
    word = value.as_text(code)
    if word in known:
        return word
    value.error(code, f"is {word!r}", f"write one of {', '.join(known)}")
    return None


def _read_ready(value: Value) -> Ready:
    entries = value.as_mapping("JS040", ("tcp", "file", "command"))
    if sum(entries.find(it) is not None for it in entries) != 1:
        hint = "write `tcp: host:port`, `file: path` or `command: [...]`"
        value.error("JS040", "must have one of tcp, file and command", hint)
    return Ready(
        tcp=entries.read("tcp", _read_address),
        file=entries.read("file", Value.as_text, "JS040"),
        command=entries.read("command", read_command) or (),
        at=value.at,
    )


def _read_address(value: Value) -> str:
    text = value.as_text("JS040")
    if not re.fullmatch(r".+:[0-9]{1,5}", text):
        value.error("JS040", f"is {text!r}", "write `host:port`, as in localhost:6379")
    return text


def read_group(value: Value, number: int) -> Group:
    """Return a group and its tasks; its `commands` run before them."""
    entries = value.as_mapping("JS012", _GROUP)
    name = entries.read("name", Value.as_name)
    if name is None:
        name = f"group-{number}"
        value.error("JS012", "has no name", "add `name:`")
    commands = entries.read("commands", Value.as_items, "JS041") or ()
    tasks = (
        *(_local_task(it, f"{name}-command-{index}") for index, it in enumerate(commands, 1)),
        *(entries.read("tasks", read_tasks, name) or ()),
    )
    if not tasks:
        value.error("JS040", "has no tasks", "add `tasks:`")
    return Group(
        name=name,
        tasks=tasks,
        resources=entries.read("resources", read_expression),
        requires=entries.read("requires", read_expression),
        depends_on=entries.read("depends_on", _read_needs),
        attributes=read_attributes(entries),
        at=value.at,
    )


def _local_task(value: Value, name: str) -> Task:
    return Task(name=name, is_named=False, is_local=True, command=read_command(value), at=value.at)


def read_expression(value: Value) -> Expression | None:
    """Return the expression in a value; `,` means `&`, and a list has alternatives."""
    if isinstance(value.content, list) and value.content:
        parts = map(read_expression, value.content)
        return Expression(tuple(it for part in parts if part for it in part.alternatives), at=value.at)
    if value.is_ambiguous:
        value.as_text("JS031")
        return None
    if not isinstance(value.content, str):
        value.must_be("names joined by | and &", "JS031", "write a name, a|b or a&b")
        return None
    terms = [re.split(r"[&,]", term) for term in value.content.split("|")]
    alternatives = tuple(tuple(name.strip() for name in names) for names in terms)
    wrong = next((it for names in alternatives for it in names if not NAME.fullmatch(it)), None)
    if wrong is None:
        return Expression(alternatives, at=value.at)
    problem = f"{wrong!r} is no name" if wrong else "a name is missing"
    value.error("JS031", f"is {value.content!r}, in which {problem}", "write a|b or a&b")
    return None
