"""A backend with a mistake does not pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jpsi_testing import toy

_TEST = """
import broken
import pytest
from jpsi_testing import ExecutorConformance
from pathlib import Path

class TestBroken(ExecutorConformance):
    executor_name = "broken"
    fake_system = "toy"
    submit_command = "tsubmit"
    plugin = broken
    timeout_seconds = 3

    @pytest.fixture(autouse=True)
    def installed(self, plugin_directory):
        plugin_directory.add(
            "broken",
            entry_points={"jpsi.executors": {"broken": "broken"}},
            files={"broken.py": Path(broken.__file__).read_text()},
        )
"""

#: What is replaced by what, the test that must see it, and what that test says.
MISTAKES = {
    "no tag": ('    yield "tag", context.tag\n', "", "found_by_its_tag", "assert {} == {'jpsi-"),
    "a line of the user's": (
        'Directive.of("#TOY", option, value)',
        'Directive(f"#TOY {option}={value}")',
        "one_line",
        r"Directive(text='#TOY name=\n",
    ),
    "what is not there is done": (
        "    return _observations(result)\n\n\n@hookimpl\ndef query_finished",
        "    return _GONE | _observations(result)\n\n\n@hookimpl\ndef query_finished",
        "not_mentioned",
        "assert '999999' not in {'999999': ",
    ),
    "an unknown state is a failure": (
        "(None, None))",
        "(JobState.FAILED, None))",
        "unknown_native_state",
        "taken for Observation(state=<JobState.FAILED",
    ),
    "no answer is an empty answer": (
        "    _, header, listed = result.checked().stdout",
        "    if not result.stdout:\n        return []\n    _, header, listed = result.stdout",
        "unreachable",
        "DID NOT RAISE SubmitException",
    ),
    "what is cut is an answer": (
        'if not header or end is None or int(end["count"]) != len(lines) or not listed.endswith("\\n"):',
        "if False:",
        "truncated_output",
        "the answer was cut to ''",
    ),
    "what is garbled is passed over": (
        "if unparsed := [",
        "if unparsed := False and [",
        "garbled_output",
        "1 is missing: 'ID STATE",
    ),
    "an answer does not say whose job it is about": (
        'tag=extract_tag(row["tag"])',
        "tag=None",
        "status_carries",
        "assert None == 'jpsi-",
    ),
    "a stranger's end is the job's": (
        'tag=extract_tag(row["tag"])',
        'tag="jpsi-0b9e6f0e-0000-4000-a000-000000000000-1"',
        "status_carries",
        "a job that carries no tag is a stranger's",
    ),
    "a guessed id": (
        "if len(found) != 1:",
        'if not found:\n        return "1"\n    if False:',
        "garbage_is_no_native_id",
        "DID NOT RAISE ValueError",
    ),
    "a clock": (
        "def cancel(native_ids: Sequence[str]) -> Command:\n",
        "def query(native_ids: Sequence[str]) -> Command:\n    import time; time.time()\n",
        "found_by_its_tag",
        "a hook takes values and returns values, and does nothing else",
    ),
    "a changed spec": (
        "    attributes = spec.attributes\n",
        "    spec.name = 'x'\n    attributes = spec.attributes\n",
        "found_by_its_tag",
        "the hook render_script changed its arguments",
    ),
    "one machine for every process": (
        "computed_node_count > 1 for",
        "computed_node_count > 9 for",
        "has_its_node",
        "assert (not [[2, 2]] or [4] in [[2, 2]])",
    ),
    "a hook is missing": (
        "def parse_status",
        "def parse_statuses",
        "required_hook",
        "assert ['parse_status'] == []",
    ),
}


_GONE = "\n_GONE = {'999999': Observation(state=JobState.COMPLETED, native_state='gone')}\n"


# A fake whose commands complain about jobs that they do not know, and do the rest.
_STRICT = """
from jpsi_testing.fake import FakeScheduler
from jpsi.plugin import CommandResult
from jpsi_testing import toy_fake
from jpsi_testing.toy_fake import unreachable

def _strict(name):
    def command(scheduler, invocation):
        known = {it.native_id for it in scheduler.listed() if not (name == "tdel" and it.state.final)}
        stdout = toy_fake.commands[name](scheduler, invocation)
        unknown = [it for it in invocation.arguments if it.isdigit() and it not in known]
        complaints = "".join(f"{name}: {it}: unknown job\\n" for it in unknown)
        return CommandResult(returncode=1 if unknown else 0, stdout=stdout, stderr=complaints)
    return command

commands = {**toy_fake.commands, "tstat": _strict("tstat"), "tdel": _strict("tdel")}
"""
# What a backend needs for it.
_LENIENT = (
    ("listed = result.checked().stdout", "listed = _answered(result).stdout"),
    (
        "def _rows(",
        """
@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    _answered(result)
    return {}


def _answered(result: CommandResult) -> CommandResult:
    told = result.stderr.splitlines()
    unknown = told and all(it.endswith(": unknown job") for it in told)
    return result if unknown and not result.timed_out else result.checked()


def _rows(""",
    ),
)


# A mistake may show as a job that never ends, which is not waited for; what is right may take its time.
_HASTE, _TIMEOUT_SECONDS = "timeout_seconds = 3", "timeout_seconds = 60"
_PATIENT_TEST = _TEST.replace(_HASTE, _TIMEOUT_SECONDS)


def conforms(folder: Path, source: str, keyword: str, test: str = _TEST) -> subprocess.CompletedProcess[str]:
    (folder / "broken.py").write_text(source + _GONE)
    (folder / "strict.py").write_text(_STRICT)
    (folder / "test_broken.py").write_text(test)
    arguments = ["-q", "-p", "no:cacheprovider", "-k", keyword, "test_broken.py"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], check=False, capture_output=True, text=True, cwd=folder
    )


def failures(done: subprocess.CompletedProcess[str]) -> str:
    """What the tests that failed say of that, without their source."""
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith("E "))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_fails_its_test(tmp_path: Path, mistake: str) -> None:
    right, wrong, keyword, expected_text = MISTAKES[mistake]
    source = Path(toy.__file__).read_text()
    assert source.count(right) == 1, "the toy has changed"

    done = conforms(tmp_path, source.replace(right, wrong), keyword)

    assert done.returncode == 1, done.stdout
    assert expected_text in failures(done), done.stdout


def test_the_toy_itself_passes_the_same(tmp_path: Path) -> None:
    """Or else the mistakes would prove nothing."""
    keywords = " or ".join(sorted({keyword for _, _, keyword, _ in MISTAKES.values()}))

    done = conforms(tmp_path, Path(toy.__file__).read_text(), keywords, _PATIENT_TEST)

    assert done.returncode == 0, done.stdout


_STRICT_TEST = _TEST.replace('"toy"', "strict").replace("import broken", "import broken\nimport strict")
_ABOUT_UNKNOWN_IDS = "hide_the_known or forgotten_job_is_no_error or unknown_id_never"


def test_a_backend_that_treats_an_unknown_id_as_an_error_fails(tmp_path: Path) -> None:
    source = Path(toy.__file__).read_text()

    done = conforms(tmp_path, source, _ABOUT_UNKNOWN_IDS, _STRICT_TEST)

    assert "3 failed" in done.stdout, done.stdout
    assert "of which 999999 is unknown, parse_status raised" in failures(done)
    assert "it has ended already" in failures(done)


def test_a_backend_that_reads_further_output_passes(tmp_path: Path) -> None:
    source = Path(toy.__file__).read_text()
    for right, other in _LENIENT:
        assert source.count(right) == 1, "the toy has changed"
        source = source.replace(right, other)

    done = conforms(tmp_path, source, _ABOUT_UNKNOWN_IDS, _STRICT_TEST.replace(_HASTE, _TIMEOUT_SECONDS))

    assert "3 passed" in done.stdout, done.stdout


def test_a_backend_that_submits_through_a_shell_passes(tmp_path: Path) -> None:
    """As one that looks first whether it has the whole script."""
    right = 'Command(["tsubmit"], stdin=script.text, unset=["TOY_*"])'
    check = 'all=$(cat); case $all in *"exit 125") printf "%s\\n" "$all" | tsubmit; esac'
    source = Path(toy.__file__).read_text()
    assert source.count(right) == 1, "the toy has changed"

    source = source.replace('["tsubmit"]', repr(["sh", "-c", check]))
    done = conforms(tmp_path, source, "found_by_its_tag", _PATIENT_TEST)

    assert "1 passed" in done.stdout, done.stdout


_SUBMITTING = "submit_command or ambiguous_submission_runs or ambiguous_submission_is"


@pytest.mark.parametrize("command", ["", "tsubmti"])
def test_an_unknown_submit_command_fails(tmp_path: Path, command: str) -> None:
    test = _PATIENT_TEST.replace('"tsubmit"', repr(command))

    done = conforms(
        tmp_path,
        Path(toy.__file__).read_text(),
        _SUBMITTING,
        test,
    )

    assert "7 failed" in done.stdout, done.stdout
    assert f"submit_command is {command!r}; it must be the command that submits" in failures(done)


@pytest.mark.parametrize(
    ("right", "expected_text"), [('"TOY_JOB_ID"', "'not set'"), ("", "skipped")], ids=["wrong", "none"]
)
def test_a_variable_without_the_id_fails(tmp_path: Path, right: str, expected_text: str) -> None:
    source = Path(toy.__file__).read_text()
    source = source.replace('id_variable="TOY_JOB_ID"', 'id_variable="TOYJOB"' if right else 'id_variable=""')

    done = conforms(tmp_path, source, "knows_its_native_id", _PATIENT_TEST)

    assert expected_text in done.stdout
    assert not right or "id_variable is 'TOYJOB'; in the running job 1" in failures(done)


def test_a_job_that_does_not_end_quotes_the_warnings(tmp_path: Path) -> None:
    source = Path(toy.__file__).read_text()
    source = source.replace("return _observations(result)", "raise KeyError(native_ids)", 1).replace(
        "parse_status(result: CommandResult)", "parse_status(result: CommandResult, native_ids: object)"
    )

    # within which the batch system is asked, on a busy machine too
    done = conforms(tmp_path, source, "unknown_id_never", _TEST.replace(_HASTE, "timeout_seconds = 10"))

    assert "jpsi has warned:" in failures(done), done.stdout
    assert "KeyError" in failures(done)


_LAUNCHER = """
import broken
from jpsi_testing import LauncherConformance

class TestLauncher(LauncherConformance):
    launcher_name = "NAME"
    plugin = broken
"""


@pytest.mark.parametrize(
    ("name", "expected_text"),
    [
        ("nowhere", "'nowhere' selects no plugin; is its distribution installed with its entry point?"),
        ("single", "the launcher 'single' of jpsi-engine"),
    ],
)
def test_a_launcher_that_is_not_selected_fails(tmp_path: Path, name: str, expected_text: str) -> None:
    test = _LAUNCHER.replace("NAME", name)

    done = conforms(tmp_path, Path(toy.__file__).read_text(), "name_selects", test)

    assert "1 failed" in done.stdout
    assert expected_text in failures(done)


_LAUNCHING = """
import broken
import pytest
from pathlib import Path
from jpsi_testing import LauncherConformance

class TestLauncher(LauncherConformance):
    launcher_name = "broken"
    plugin = broken
    max_processes = 2
    timeout_seconds = 3

    @pytest.fixture(autouse=True)
    def installed(self, plugin_directory):
        plugin_directory.add(
            "broken",
            entry_points={"jpsi.launchers": {"broken": "broken"}},
            files={"broken.py": Path(broken.__file__).read_text()},
        )
"""
_TWICE = """
from jpsi.plugin import JobState, Observation, ResourceSpecV1, ShellLine, hookimpl

ONE = '''exec "$@"'''
TWO = '''
trap 'kill $_pids $!; wait; exit 143' TERM
_pids=
command exec 3<&0
set -- /usr/bin/env --default-signal=INT,QUIT "$@"
"$@" <&3 3<&- &
_pids=$!
"$@" </dev/null 3<&- &
_pids="$_pids $!"
_code=0
for _pid in $_pids; do wait $_pid || _code=$?; done
(exit $_code)
'''

@hookimpl
def launch(spec):
    resources = spec.resources
    is_one = not isinstance(resources, ResourceSpecV1) or resources.computed_process_count == 1
    return [ShellLine(line) for line in (ONE if is_one else TWO).splitlines()]
"""
#: What is replaced by what in a launcher that is right, the test that must see it, and what that test says.
LAUNCHER_MISTAKES = {
    "a code is lost": (
        "|| _code=$?",
        "|| :",
        "process_that_fails",
        "<JobState.COMPLETED: 'COMPLETED'> != <JobState.FAILED: 'FAILED'>",
    ),
    "a code of two": ("|| _code=$?", "|| _code=$((_code | $?))", "fail_differently", "assert 7 in {3, 5}"),
    "a signal is lost": ("|| _code=$?", "|| _code=1", "signal_ends", "At index 1 diff: 1 != 137"),
    "nobody is waited for": (
        "do wait $_pid || _code=$?; done",
        "do :; done",
        "post_launch_runs_after",
        ".max_processes",
    ),
    "a process too many": (
        '_pids="$_pids $!"',
        '"$@" </dev/null & _pids="$_pids $!"',
        "process_runs_once",
        r"assert ['here\n', 'here\n', 'here\n'] == ['here\n', 'here\n']",
    ),
    "words of its own": (
        "_code=0",
        "_code=0; echo starting",
        "output_is_that",
        r"assert 'starting\nout\nout\n' == 'out\nout\n'",
    ),
    "input for nobody": ('"$@" <&3', '"$@" </dev/null', "input_goes", r"'' != 'put in\n'"),
    "an environment of its own": (
        "_pids=\n",
        '_pids=\nset -- /usr/bin/env -u FROM_PRE "$@"\n',
        "pre_launch_exports_reaches",
        r"At index 0 diff: ' 1 2\n' != ",
    ),
    "words are split": (
        'set -- /usr/bin/env --default-signal=INT,QUIT "$@"',
        "set -- $*",
        "paths_may_have",
        "assert <JobState.FAILED: 'FAILED'> is <JobState.COMPLETED: 'COMPLETED'>",
    ),
    "what it starts is left": (
        "trap 'kill $_pids $!; wait; exit 143' TERM\n",
        "",
        "term_leaves_no_process",
        "nothing is left: not so in 3 s",
    ),
    "signals are ignored": (
        "--default-signal=INT,QUIT",
        "--ignore-signal=PIPE",
        "dispositions",
        "('SigIgn:', 13)",
    ),
}


@pytest.mark.parametrize("mistake", LAUNCHER_MISTAKES)
def test_each_mistake_of_a_launcher_fails_its_test(tmp_path: Path, mistake: str) -> None:
    right, wrong, keyword, expected_text = LAUNCHER_MISTAKES[mistake]
    assert right in _TWICE

    done = conforms(tmp_path, _TWICE.replace(right, wrong), keyword, _LAUNCHING)

    assert done.returncode == 1, done.stdout
    assert expected_text in failures(done), done.stdout


def test_the_launcher_without_mistakes_passes_all(tmp_path: Path) -> None:
    done = conforms(tmp_path, _TWICE, "test", _LAUNCHING.replace(_HASTE, _TIMEOUT_SECONDS))

    assert done.returncode == 0, done.stdout
