"""Commands as one text, which a shell runs, and as a list of arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import drive_run, loaded
from jpsi import JobState
from jpsi_engine import job_store
from jpsi_jobspec.run_store import journal as journals
from jpsi_jobspec.run_store.journal import Journal

Log = Callable[[], list[str]]
HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\n"
#: The places for a command; its text follows, as YAML.
PLACES = {
    "task": f"{HEAD}tasks:\n- {{name: t, resources: r, command: %s}}\n",
    "in a group": f"{HEAD}groups:\n- {{name: g, resources: r, tasks: [{{name: t, command: %s}}]}}\n",
    "local": f"{HEAD}groups:\n- {{name: g, resources: r, tasks: [{{name: t, local: true, command: %s}}]}}\n",
    "line of a group": (
        f"{HEAD}groups:\n- {{name: g, resources: r, commands: [%s],"
        " tasks: [{name: t, command: ['true']}]}\n"
    ),
}


def ended(journal: Journal) -> tuple[JobState, int | None]:
    (entry,) = journal.plan.entries
    part = journal.parts[entry.id][0]
    return part.state, part.exit_code


@pytest.mark.clause("ng-command-forms", "ng-command-text")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("command", "text"),
    {
        "a redirection": ("echo x > f", "x\n"),
        "lines": ("|\n   echo one > f\n   echo two >> f", "one\ntwo\n"),
        "a pipe": ("printf 'b\\na\\n' | sort > f", "a\nb\n"),
        "conditions": ("false || echo x > f && echo y >> f", "x\ny\n"),
        "a variable": ("x='a  b'; echo \"$x\" > f", "a  b\n"),
        "a quote in a text": ("|\n   cat > f <<END\n   it's\n   END", "it's\n"),
    }.values(),
    ids=["a redirection", "lines", "a pipe", "conditions", "a variable", "a quote in a text"],
)
def test_a_text_is_run_by_a_shell(place: str, command: str, text: str, tmp_path: Path, log: Log) -> None:
    lines = command.removeprefix("|\n   ").replace("\n   ", "\n")
    quoted = '"' + lines.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    journal = drive_run(PLACES[place] % quoted, "local", tmp_path)

    assert ended(journal) == (JobState.COMPLETED, 0)
    assert (tmp_path / "home/f").read_text() == text


@pytest.mark.parametrize("place", PLACES)
def test_a_line_that_fails_is_the_last_of_a_text(place: str, tmp_path: Path, log: Log) -> None:
    journal = drive_run(PLACES[place] % r'"(exit 7)\necho more > f"', "local", tmp_path)

    assert ended(journal) == (JobState.FAILED, 7)
    assert not (tmp_path / "home/f").exists()


@pytest.mark.clause("ng-command-forms", "ng-command-text")
@pytest.mark.parametrize("place", PLACES)
def test_a_list_has_its_arguments_unchanged(place: str, tmp_path: Path, log: Log) -> None:
    journal = drive_run(PLACES[place] % '["ior", "$HOME > f && false", "a  b"]', "local", tmp_path)

    assert ended(journal) == (JobState.COMPLETED, 0)
    assert " ior $HOME > f && false a  b of " in log()[0]


def test_several_lines_have_the_exit_code_of_the_last(tmp_path: Path, log: Log) -> None:
    """Further lines are commands, not arguments of the first."""
    journal = drive_run(PLACES["task"] % r'"/bin/echo one\n/bin/echo two && false"', "local", tmp_path)

    (job,) = job_store.jobs()
    output = job.output("stdout").read(0)
    assert output is not None
    assert output.data == b"one\ntwo\n"
    assert ended(journal) == (JobState.FAILED, 1)


def test_a_probe_that_is_a_text_is_run_by_a_shell(tmp_path: Path, log: Log) -> None:
    text = (
        f"{HEAD}groups:\n- name: g\n  resources: r\n  tasks:\n"
        "  - {name: s, local: true, service: true, command: 'echo up > up; sleep 600',"
        " ready: {command: 'test -s up && grep -q u up'}}\n"
        "  - {name: t, command: ior, depends_on: [s]}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    inside = journals.inner_journal(journal.path, journal.plan.entries[0])
    assert [it[0].value for it in inside.states.values()] == ["CANCELED", "COMPLETED"]


@pytest.mark.parametrize("command", ["sleep infinity", "' sleep  infinity '", "[sleep, infinity]"])
def test_an_endless_command_is_treated_as_a_service_in_either_form(command: str) -> None:
    document, warnings = loaded(PLACES["task"] % command)

    assert document.tasks[0].is_service
    assert [it.code for it in warnings] == ["JS040"]
