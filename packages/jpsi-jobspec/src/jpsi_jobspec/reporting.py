"""The commands that only look: validate, plan, graph, render and satisfy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import click
import yaml

from jpsi import Job, JobExecutor, read_document, read_script

from . import drawing, picture, runs
from .canonical import Converted, from_canonical, to_canonical
from .choosing import required
from .from_job import from_job
from .given import Given
from .jobs import submitted
from .looking import insides
from .opening import opened, planned, read, site
from .planned import Entry, Plan
from .problems import WorkflowError
from .progress import joined
from .satisfy import Verdict
from .shape import Shape, as_one_kind
from .telling import DONE, FAILED, MISTAKE, fenced, warn


def validate(given: Given, *, as_json: bool) -> int:
    """Say what is wrong with a document, and return the exit code."""

    def command() -> int:
        try:
            found = opened(given)[1].warnings
        except WorkflowError as e:
            if not as_json:
                raise
            found = [*e.found, *e.loose]
        if as_json:
            click.echo(json.dumps([attrs.asdict(it) for it in found], indent=2))
            return MISTAKE if any(it.is_error for it in found) else DONE
        warn(found)
        click.echo(f"{given.file}: {_verdict(len(found))}")
        return DONE

    return fenced(command)


def _verdict(warnings: int) -> str:
    if not warnings:
        return "nothing is wrong"
    return f"{warnings} warning{'s' if warnings > 1 else ''}, no errors"


def plan(given: Given, *, is_explained: bool, as_json: bool) -> int:
    """Show what a document comes to, and return the exit code."""

    def command() -> int:
        made, findings = planned(given)
        if as_json:
            click.echo(json.dumps(as_plain(made), indent=2))
            return DONE
        warn(findings.warnings)
        for line in drawing.lines(made, is_explained=is_explained):
            click.echo(line)
        return DONE

    return fenced(command)


def graph(given: Given, *, has_states: bool, output: str | None) -> int:
    """Draw what waits for what, and return the exit code."""

    def command() -> int:
        made, findings = planned(given)
        warn(findings.warnings)
        run = runs.latest(given.file) if has_states else None
        found = () if run is None else (run, *insides(run))
        states = {name: joined(it).value for each in found for name, it in each.states.items()}
        if output is not None:
            Path(output).write_text(picture.svg(made, states), encoding="utf-8")
            return DONE
        for line in drawing.tree(made, states):
            click.echo(line)
        return DONE

    return fenced(command)


def render(given: Given) -> int:
    """Show what would be submitted, and return the exit code."""

    def command() -> int:
        made, findings = planned(given)
        warn(findings.warnings)
        with JobExecutor(made.target) as executor:
            for entry in made.entries:
                click.echo(_rendered(entry, executor))
        return DONE

    return fenced(command)


def _rendered(entry: Entry, executor: JobExecutor) -> str:
    head = f"### {entry.id}: {entry.kind.value}" + (f" x {entry.replicas}" if entry.replicas > 1 else "")
    spec = submitted(entry)
    if spec is None:
        return f"{head}\n### nothing is submitted for it\n"
    preview = executor.preview(Job(spec))
    parts = [head, f"### {' '.join(preview.command)}"]
    if preview.script is not None:
        parts += ["### reads:", preview.script.rstrip("\n")]
    return "\n".join([*parts, f"### {preview.path}:", preview.run])


def satisfy(given: Given, *, as_json: bool) -> int:
    """Say whether what a document requires is there, and return the exit code."""

    def command() -> int:
        document, _ = opened(given)
        known = site(given).subsystems
        answers = dict(required(document, known))
        if as_json:
            content = {
                name: {"verdict": it.verdict.value, "reasons": it.reasons} for name, it in answers.items()
            }
            click.echo(json.dumps(content, indent=2))
        else:
            for name, answer in answers.items():
                click.echo(f"{name}: {answer.verdict.value}")
                for reason in answer.reasons:
                    click.echo(f"  {reason}")
            if not answers:
                click.echo(f"{given.file}: nothing is required")
        wrong = {Verdict.NO, Verdict.UNKNOWN} if given.missing == "fail" else {Verdict.NO}
        return FAILED if any(it.verdict in wrong for it in answers.values()) else DONE

    return fenced(command)


def as_plain(made: Plan) -> dict[str, Any]:
    """A plan as JSON has it."""
    return {"source": made.source, "target": made.target, "entries": [_plain(it) for it in made.entries]}


def _plain(entry: Entry) -> dict[str, Any]:
    attributes = entry.attributes
    return {
        "id": entry.id,
        "kind": entry.kind.value,
        "command": list(entry.command),
        "replicas": entry.replicas,
        "resources": entry.resources,
        "asks": None if entry.shape is None else _asked(entry.shape),
        "after": [attrs.asdict(it) for it in entry.after],
        "when": entry.when.value,
        "duration": None if attributes.duration is None else attributes.duration.total_seconds(),
        "environment": dict(attributes.environment),
        "cwd": attributes.cwd,
        "options": {**entry.constraints, **attributes.options},
        "why": list(entry.why),
        "lost": list(entry.lost),
        "files": list(entry.files),
        "inside": [_plain(it) for it in entry.inside],
    }


def _asked(shape: Shape) -> dict[str, Any]:
    if shape.pieces:
        return {"components": [_asked(it) for it in shape.pieces]}
    return {key: it for key, it in attrs.asdict(as_one_kind(shape)).items() if it is not None}


def convert(given: Given, *, direction: str) -> int:
    """Convert a document, tell what was lost, and return the exit code."""

    def command() -> int:
        if direction == "to-flux":
            _to_flux(given)
            return DONE
        converted = _converted(given, direction)
        warn(converted.lost)
        click.echo(yaml.safe_dump(dict(converted.content), sort_keys=False), nl=False)
        return DONE

    return fenced(command)


def _converted(given: Given, direction: str) -> Converted:
    """The workflow that a document of another kind comes to."""
    text = read(given.file)
    if direction == "from-flux":
        return from_canonical(text, given.file)
    if direction == "from-jpsi":
        return from_job(read_document(text, given.file))
    script = read_script(text, Path(given.file).absolute(), Path.cwd(), given.executor)
    made = from_job(script.spec)
    return attrs.evolve(made, lost=(*script.lost, *made.lost))


def _to_flux(given: Given) -> None:
    document, _ = opened(given)
    made, _ = planned(given)
    found = {it.id: to_canonical(it, document.user) for it in made.entries if it.command or it.replicated}
    for entry in made.entries:
        lost = found[entry.id].lost if entry.id in found else ("it is no job, and left out",)
        warn(f"{entry.id}: {it}" for it in lost)
    click.echo(json.dumps({name: it.content for name, it in found.items()}, indent=2))
