from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from jpsi_cli import exit_codes
from jpsi_cli.options.job_options import RUN_PARAMETERS

Run = Callable[..., subprocess.CompletedProcess[bytes]]


def test_help_names_every_option_and_every_exit_code(run: Run, environment: dict[str, str]) -> None:
    environment["COLUMNS"] = "80"

    result = run("run", "--help")

    text = result.stdout.decode()
    assert result.returncode == 0
    shown = [it for it in RUN_PARAMETERS if not getattr(it, "hidden", False)]
    options = [option for parameter in shown for option in parameter.opts if option.startswith("-")]
    assert [option for option in options if option not in text] == []
    assert [meaning for meaning in exit_codes.MEANINGS.values() if meaning not in text] == []
    assert max(map(len, text.splitlines())) <= 90
    assert "jpsi run -f job.yaml" in text


def test_version_is_that_of_the_package(run: Run) -> None:
    result = run("--version")

    assert result.returncode == 0
    assert result.stdout.startswith(b"jpsi ")
    assert b"jpsi-core " in result.stdout


def test_without_a_command_help_is_printed_as_an_error(run: Run) -> None:
    result = run()

    assert (result.returncode, result.stdout) == (2, b"")
    assert b"Usage: jpsi " in result.stderr


def test_a_group_without_a_command_prints_its_help_as_an_error(run: Run) -> None:
    result = run("config")

    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"Usage: jpsi config ")


def test_a_usage_error_names_the_help_of_its_command(run: Run) -> None:
    result = run("doctor", "-x")

    assert result.returncode == 2
    assert result.stderr == b"jpsi: option '-x' requires an argument.\nTry: jpsi doctor --help\n"


USAGE_ERRORS = {
    "no command": (["run"], "jpsi: no command to run"),
    "unknown command": (["walk"], "jpsi: no such command 'walk'"),
    "command of a batch system": (["qdel", "17"], "jpsi: no such command 'qdel'; type jpsi cancel"),
    "command of another program": (["delete", "17"], "jpsi: no such command 'delete'; type jpsi cancel"),
    "another word for a command": (["pause", "17"], "jpsi: no such command 'pause'; type jpsi hold"),
    "word for what is done again": (["repeat", "17"], "jpsi: no such command 'repeat'; type jpsi resubmit"),
    "command of jobs in a group": (
        ["workflow", "explain", "a.yaml"],
        "jpsi: no such command 'explain'; there is jpsi explain",
    ),
    "state": (
        ["ls", "--state", "ended"],
        "jpsi: invalid value for '--state' / '-s': 'ended' is not one of NEW, QUEUED, ACTIVE",
    ),
    "word that is like another": (["restart", "17"], "jpsi: no such command 'restart'; type jpsi resubmit"),
    "mistyped word of another program": (["stauts"], "jpsi: no such command 'stauts'; type jpsi ls"),
    "similar command": (["lss"], "jpsi: no such command 'lss'. Did you mean 'ls'?"),
    "help as a command": (["help", "run"], "jpsi: no such command 'help'; type jpsi --help"),
    "all jobs": (["cancel", "--all"], "jpsi: no such option '--all'; jpsi ls --ids | xargs jpsi cancel"),
    "failed jobs": (["ls", "--failed"], "jpsi: no such option '--failed'; jpsi ls --state FAILED"),
    "unknown option": (["run", "--nodess", "3", "--", "true"], "jpsi: no such option"),
    "option of another command": (
        ["run", "--array", "1-3", "--", "true"],
        "jpsi: no such option '--array'; jpsi submit has it",
    ),
    "mistyped option": (
        ["run", "--tme", "3", "--", "true"],
        "jpsi: no such option '--tme'. Did you mean '--time'?",
    ),
    "option of many commands": (
        ["plugins", "--time", "3", "--", "true"],
        "jpsi: no such option '--time'; jpsi run, jpsi submit, jpsi resubmit and jpsi script have it",
    ),
    "document as an argument": (
        ["validate", "a.yaml"],
        "jpsi: got unexpected extra argument (a.yaml); name a",
    ),
    "executor as an argument": (
        ["doctor", "slurm"],
        "jpsi: got unexpected extra argument (slurm); name an executor by -x",
    ),
    "option without value": (["run", "--queue", "--", "true"], "jpsi: --queue needs a value"),
    "empty executor": (["run", "-x", "", "--", "true"], "jpsi: --executor needs a value"),
    "document and command": (["run", "-f", "a.yaml", "--", "true"], "jpsi: -f a.yaml and the command 'true'"),
    "document and --expand": (["run", "-f", "a.yaml", "--expand"], "jpsi: --expand is about a COMMAND"),
}


def test_a_second_native_id_is_not_taken_for_an_executor(run: Run) -> None:
    assert run("attach", "1", "2").stderr.startswith(b"jpsi: got unexpected extra argument (2)\n")


@pytest.mark.parametrize(("arguments", "message"), USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_a_mistake_in_the_command_line_is_reported_in_a_sentence(
    run: Run, arguments: list[str], message: str
) -> None:
    result = run(*arguments)

    assert (result.returncode, result.stdout) == (2, b"")
    lines = result.stderr.decode().splitlines()
    assert lines[0].startswith(message)
    assert lines[1].startswith("Try: jpsi ")
    assert len(lines) == 2


def test_help_into_a_closed_pipe_is_quiet(run: Run) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    result = run("--help", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)

    assert (result.returncode, result.stderr) == (141, b"")


def test_help_needs_no_library() -> None:
    program = "import sys, jpsi_cli.main; print([name for name in ('jpsi', 'rich') if name in sys.modules])"

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert result.stdout == b"[]\n"


def test_a_bug_shows_its_traceback() -> None:
    program = (
        "import sys, jpsi, jpsi_cli.main\n"
        "jpsi.escape = lambda text: 1 // 0\n"
        "sys.argv = ['jpsi', 'run', '--', 'echo', 'x']\n"
        "jpsi_cli.main.main()\n"
    )

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert result.returncode == 125
    assert b"ZeroDivisionError" in result.stderr
    assert result.stderr.splitlines()[-1].startswith(b"jpsi: this is a bug in jpsi")


COMMANDS = [
    *[
        "run",
        "submit",
        "script",
        "validate",
        "ls",
        "show",
        "explain",
        "wait",
        "cancel",
        "hold",
        "release",
        "logs",
    ],
    *["top", "attach", "plugins", "config", "config show", "config check", "fake"],
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_fits_and_lists_exit_codes(
    run: Run, environment: dict[str, str], command: str
) -> None:
    environment["COLUMNS"] = "80"

    result = run(*command.split(), "--help")

    lines = result.stdout.decode().splitlines()
    assert (result.returncode, result.stderr) == (0, b"")
    assert lines[0].startswith(f"Usage: jpsi {command} ")
    assert max(map(len, lines)) <= 90
    assert command.startswith("config") or "xit codes" in result.stdout.decode()


def test_all_commands_are_listed(run: Run) -> None:
    listed = run("--help").stdout.decode()

    assert [command for command in COMMANDS if f"\n  {command.split()[0]} " not in listed] == []
