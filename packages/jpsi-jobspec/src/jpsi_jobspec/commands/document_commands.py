"""The commands that only read documents: validate, plan, graph, render, satisfy and convert."""

from __future__ import annotations

import contextlib
import json
import warnings
from pathlib import Path

import attrs
import click
import yaml

from jpsi import (
    DocumentWarning,
    InvalidJobException,
    Job,
    JobExecutor,
    JpsiError,
    read_document,
    read_script,
)

from ..conversion import Converted, from_canonical, from_job, to_canonical
from ..document import WorkflowError
from ..planning import Entry, Verdict, evaluate_requirements
from ..reporting import group_journals, plan_to_dict, render_plan, render_svg, render_tree
from ..run_store import latest_run
from ..running import EXIT_DONE, EXIT_FAILED, EXIT_USAGE, combined_state, find_misfits, submitted_spec
from .arguments import Arguments
from .messages import print_warnings
from .preparation import find_site, load_document, prepare_plan, read_text


def validate(arguments: Arguments, *, as_json: bool) -> int:
    """Report the problems of a document, and return the exit code."""
    try:
        found = load_document(arguments)[1].warnings
    except WorkflowError as e:
        if not as_json:
            raise
        found = [*e.errors, *e.warnings]
    if as_json:
        click.echo(json.dumps([attrs.asdict(it) for it in found], indent=2))
        return EXIT_USAGE if any(it.is_error for it in found) else EXIT_DONE
    print_warnings(found)
    count = f"{len(found)} warning{'s' if len(found) > 1 else ''}"
    click.echo(f"{arguments.file}: {f'{count}, no errors' if found else 'nothing is wrong'}")
    return EXIT_DONE


def plan(arguments: Arguments, *, is_explained: bool, as_json: bool) -> int:
    """Show the plan of a document, and return the exit code."""
    made, findings, _ = prepare_plan(arguments)
    if as_json:
        click.echo(json.dumps(plan_to_dict(made), indent=2))
        return EXIT_DONE
    print_warnings(findings.warnings)
    # a plan needs no batch system
    with contextlib.suppress(JpsiError), JobExecutor(made.target) as executor:
        misfits = find_misfits(made, executor)
        print_warnings(f"{made.source}: {it}" for it in (*misfits.excess, *misfits.warnings))
    for line in render_plan(made, is_explained=is_explained):
        click.echo(line)
    return EXIT_DONE


def graph(arguments: Arguments, *, has_states: bool, output: str | None) -> int:
    """Draw the dependency graph of a document, and return the exit code."""
    made, findings, _ = prepare_plan(arguments)
    print_warnings(findings.warnings)
    run = latest_run(arguments.file) if has_states else None
    found = () if run is None else (run, *group_journals(run))
    states = {name: combined_state(it).value for each in found for name, it in each.states.items()}
    if output is not None:
        try:
            Path(output).write_text(render_svg(made, states), encoding="utf-8")
        except OSError as e:
            raise InvalidJobException(f"{output} cannot be written: {e.strerror}", e) from e
        return EXIT_DONE
    for line in render_tree(made, states):
        click.echo(line)
    return EXIT_DONE


def render(arguments: Arguments) -> int:
    """Show what would be submitted, and return the exit code."""
    made, findings, _ = prepare_plan(arguments)
    print_warnings(findings.warnings)
    with JobExecutor(made.target) as executor:
        for entry in made.entries:
            click.echo(_render_entry(entry, executor))
    return EXIT_DONE


def _render_entry(entry: Entry, executor: JobExecutor) -> str:
    head = f"### {entry.id}: {entry.label}"
    spec = submitted_spec(entry)
    if spec is None:
        return f"{head}\n### nothing is submitted for it\n"
    preview = executor.preview(Job(spec))
    parts = [head, f"### {' '.join(preview.command)}"]
    if preview.script is not None:
        parts += ["### reads:", preview.script.rstrip("\n")]
    return "\n".join([*parts, f"### {preview.path}:", preview.run])


def satisfy(arguments: Arguments, *, as_json: bool) -> int:
    """Report whether the requirements of a document are met, and return the exit code."""
    document, _ = load_document(arguments)
    known = find_site(arguments).subsystems
    answers = dict(evaluate_requirements(document, known))
    if as_json:
        click.echo(json.dumps({name: attrs.asdict(it) for name, it in answers.items()}, indent=2))
    else:
        for name, answer in answers.items():
            click.echo("\n  ".join((f"{name}: {answer.verdict}", *answer.reasons)))
        if not answers:
            click.echo(f"{arguments.file}: nothing is required")
    failing = {Verdict.NO, Verdict.UNKNOWN} if arguments.missing == "fail" else {Verdict.NO}
    return EXIT_FAILED if any(it.verdict in failing for it in answers.values()) else EXIT_DONE


def convert(arguments: Arguments, *, direction: str) -> int:
    """Convert a document, report what was lost, and return the exit code."""
    if direction == "to-flux":
        _to_flux(arguments)
        return EXIT_DONE
    converted = _convert(arguments, direction)
    print_warnings(converted.lost)
    click.echo(yaml.safe_dump(dict(converted.content), sort_keys=False), nl=False)
    return EXIT_DONE


def _convert(arguments: Arguments, direction: str) -> Converted:
    """Return the workflow that another kind of document becomes."""
    text = read_text(arguments.file)
    if direction == "from-flux":
        return from_canonical(text, arguments.file)
    if direction == "from-jpsi":
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DocumentWarning)
            spec = read_document(text, arguments.file, lenient=arguments.is_lenient)
        made = from_job(spec)
        return attrs.evolve(made, lost=(*(str(it.message) for it in caught), *made.lost))
    script = read_script(text, Path(arguments.file).absolute(), Path.cwd(), arguments.executor)
    made = from_job(script.spec)
    return attrs.evolve(made, lost=(*script.lost, *made.lost))


def _to_flux(arguments: Arguments) -> None:
    document, _ = load_document(arguments)
    made, _, _ = prepare_plan(arguments)
    found = {it.id: to_canonical(it, document.user) for it in made.entries if it.command or it.replicated}
    for entry in made.entries:
        lost = found[entry.id].lost if entry.id in found else ("it is no job, and left out",)
        print_warnings(f"{entry.id}: {it}" for it in lost)
    click.echo(json.dumps({name: it.content for name, it in found.items()}, indent=2))
