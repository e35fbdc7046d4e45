"""A backend with a mistake does not pass."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from jpsi import JobAttributes, JobSpec, ResourceSpecV1
from jpsi_testing import ExecutorConformance, toy
from jpsi_testing.conformance.attributes import OF_JPSI, TRANSLATED, UNREAD

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
    "no tag": ('    yield "tag", context.tag\n', "", "found_by_its_tag", "parse_find returned {}"),
    "a line of the user's": (
        'Directive.of("#TOY", option, value)',
        'Directive(f"#TOY {option}={value}")',
        "one_line",
        "a directive is one line; with name='",
    ),
    "what is not there is done": (
        "    return _observations(result)\n\n\n@hookimpl\ndef query_finished",
        "    return _GONE | _observations(result)\n\n\n@hookimpl\ndef query_finished",
        "not_mentioned",
        "the batch system has no job 999999, and parse_status returned Observation(",
    ),
    "an unknown state is a failure": (
        "(None, None))",
        "(JobState.FAILED, None))",
        "unknown_native_state",
        "no job has the state XYZZY, and parse_status took it for FAILED",
    ),
    "a job that waits runs": (
        '"WAITING": (JobState.QUEUED',
        '"WAITING": (JobState.ACTIVE',
        "has_not_started",
        "the job is QUEUED: the batch system says 'WAITING', which parse_status took for ACTIVE",
    ),
    "a job that is held runs": (
        '"HELD": (JobState.QUEUED',
        '"HELD": (JobState.ACTIVE',
        "has_not_started",
        "the job is QUEUED: the batch system says 'HELD', which parse_status took for ACTIVE",
    ),
    "no answer is an empty answer": (
        "    _, header, listed = result.checked().stdout",
        "    if not result.stdout:\n        return []\n    _, header, listed = result.stdout",
        "unreachable_batch_system_is_an_error",
        "the batch system cannot be reached, and parse_status returned {}",
    ),
    "what is cut is an answer": (
        'if not header or end is None or int(end["count"]) != len(lines) or not listed.endswith("\\n"):',
        "if False:",
        "truncated_output",
        "the answer was cut to '', and parse_status returned {}",
    ),
    "what is garbled is passed over": (
        "if unparsed := [",
        "if unparsed := False and [",
        "garbled_output",
        "the answer is garbled, and parse_status passed over job 1: 'ID STATE",
    ),
    "an answer does not say whose job it is about": (
        'tag=extract_tag(row["tag"])',
        "tag=None",
        "status_carries",
        "-1; its observation has None",
    ),
    "the end of a foreign job is the job's": (
        'tag=extract_tag(row["tag"])',
        'tag="jpsi-0b9e6f0e-0000-4000-a000-000000000000-1"',
        "status_carries",
        "a job that carries no tag is a foreign job; the tag of its observation is 'jpsi-0b9e6f0e",
    ),
    "a guessed id": (
        "if len(found) != 1:",
        'if not found:\n        return "1"\n    if False:',
        "garbage_is_no_native_id",
        "the submit command printed '', which parse_submit took for the id '1'",
    ),
    "a clock": (
        "def cancel(native_ids: Sequence[str]) -> Command:\n",
        "def query(native_ids: Sequence[str]) -> Command:\n    import time; time.time()\n",
        "found_by_its_tag",
        "a hook takes values and returns values, and does nothing else",
    ),
    "a changed spec": (
        "    attributes = spec.attributes\n    seconds",
        "    spec.name = 'x'\n    attributes = spec.attributes\n    seconds",
        "found_by_its_tag",
        "the hook render_script changed its arguments",
    ),
    "one machine for every process": (
        "computed_node_count > 1 for",
        "computed_node_count > 9 for",
        "has_its_node",
        "the numbers of processes on each node should be [2, 2]; the node file has [4]",
    ),
    "a hook is missing": (
        "def parse_status",
        "def parse_statuses",
        "required_hook",
        "every backend implements the hooks ['parse_status']; this one does not",
    ),
}


# By the attribute that is dropped: what is replaced by what, in pairs.
DROPPED: dict[str, tuple[str, ...]] = {
    "name": ('    yield "name", spec.name or None\n', ""),
    "resources.node_count": ('"a toy has one node": any(it.computed_node_count > 1 for it in slots),', ""),
    "resources.process_count": ("it.computed_core_count", "(it.cpu_cores_per_process or 1)"),
    "resources.processes_per_node": (
        "it.computed_core_count",
        "(it.process_count or 1) * (it.cpu_cores_per_process or 1)",
    ),
    "resources.cpu_cores_per_process": ("it.computed_core_count", "it.computed_process_count"),
    "resources.gpu_cores_per_process": (
        '"a toy has no GPUs": any(it.gpu_cores_per_process for it in slots),',
        "",
    ),
    "resources.exclusive_node_use": ("any(it.exclusive_node_use for it in slots)", "False"),
    "resources.memory": ("any(it.memory is not None for it in slots)", "False"),
    "attributes.duration": ("None if seconds is None else str(seconds)", "None"),
    **{
        f"attributes.{name}": ('["queue_name", "project_name"]', "JobAttributes.text_names()")
        for name in JobAttributes.text_names()
    },
    "attributes.gpu_type": (
        *('["queue_name", "project_name"]', "JobAttributes.text_names()"),
        *('"a toy has no GPUs": any(it.gpu_cores_per_process for it in slots),', ""),
    ),
    "attributes.queue_name": ('    yield "queue", attributes.queue_name\n', ""),
    "attributes.project_name": ('    yield "project", attributes.project_name\n', ""),
    "attributes.custom_attributes": ('has no further options: {options}": options', 'has no options": False'),
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
    lines = result.stderr.splitlines()
    unknown = lines and all(it.endswith(": unknown job") for it in lines)
    return result if unknown and not result.timed_out else result.checked()


def _rows(""",
    ),
)


@attrs.define(slots=True)
class Reports:
    """The outcomes of tests that ran within a test: a plugin of pytest."""

    outcomes: Counter[str] = attrs.field(factory=Counter)
    #: What the tests that failed say of that, and what skipped ones give as the reason.
    text: str = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test, if it has ended, and keep what it says."""
        if report.when == "call" or not report.passed:
            self.outcomes[report.outcome] += 1
            self.text += report.longreprtext + "\n"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a module cannot be imported."""
        self.text += report.longreprtext if report.failed else ""


Conforms = Callable[..., Reports]


@pytest.fixture
def conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conforms]:
    """A function that runs tests on a plugin in this process: to start pytest takes a second."""
    # what modules of the project's own plugins hold is this process's
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.syspath_prepend(tmp_path)
    options = ["-p", "jpsi_testing.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-s"]
    # without the source of a failed test, which takes long to find
    options += ["--tb=line"]

    def run(source: str, keyword: str, test: str = _TEST) -> Reports:
        options_of_its_own = source.replace('startswith("toy.")', 'startswith("broken.")')
        (tmp_path / "broken.py").write_text(options_of_its_own + _GONE)
        (tmp_path / "strict.py").write_text(_STRICT)
        (tmp_path / "test_broken.py").write_text(test)
        reports = Reports()
        places = [f"--rootdir={tmp_path}", f"--basetemp={tmp_path / 'tmp'}", str(tmp_path / "test_broken.py")]
        pytest.main(["-vv", "--no-summary", *options, "-k", keyword, *places], plugins=[reports])
        return reports

    yield run
    for name in ("broken", "strict", "test_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_defect_fails_its_test(conforms: Conforms, mistake: str) -> None:
    right, wrong, keyword, expected_text = MISTAKES[mistake]
    source = Path(toy.__file__).read_text()
    assert source.count(right) == 1, "the toy has changed"

    reports = conforms(source.replace(right, wrong), keyword)

    assert expected_text in reports.text


@pytest.mark.parametrize("attribute", TRANSLATED)
def test_each_attribute_that_is_dropped_fails_its_test(conforms: Conforms, attribute: str) -> None:
    source = Path(toy.__file__).read_text()
    for right, wrong in zip(DROPPED[attribute][::2], DROPPED[attribute][1::2], strict=True):
        assert source.count(right) == 1, "the toy has changed"
        source = source.replace(right, wrong)

    reports = conforms(source, f"each_attribute_is_passed_on and {attribute}")

    assert reports.outcomes["failed"] >= 1
    assert f"{attribute} is dropped: a job with " in reports.text


def test_every_attribute_is_tested() -> None:
    rooms: dict[str, type[attrs.AttrsInstance]] = {"resources.": ResourceSpecV1, "attributes.": JobAttributes}
    names = [it.name for it in attrs.fields(JobSpec) if f"{it.name}." not in rooms]
    names += [room + it.name for room, part in rooms.items() for it in attrs.fields(part)]
    here = {**dict.fromkeys(TRANSLATED, "test_each_attribute_is_passed_on_or_refused"), **OF_JPSI}

    assert sorted(names) == sorted([*here, *UNREAD])
    assert [name for name, test in here.items() if not hasattr(ExecutorConformance, test)] == []


def test_the_toy_itself_passes_the_same(conforms: Conforms) -> None:
    """Or else the mistakes would prove nothing."""
    keywords = " or ".join(sorted({"each_attribute", *(keyword for _, _, keyword, _ in MISTAKES.values())}))

    reports = conforms(Path(toy.__file__).read_text(), keywords)

    assert reports.outcomes.keys() <= {"passed", "skipped"}, reports.text


_STRICT_TEST = _TEST.replace('"toy"', "strict").replace("import broken", "import broken\nimport strict")
_ABOUT_UNKNOWN_IDS = "hide_the_known or forgotten_job_is_no_error or unknown_id_never"


def _hasty(test: str, seconds: int) -> str:
    """A mistake may show as a job that never ends, which is not waited for."""
    return test.replace("    plugin = broken\n", f"    plugin = broken\n    timeout_seconds = {seconds}\n")


def test_a_backend_that_treats_an_unknown_id_as_an_error_fails(conforms: Conforms) -> None:
    source = Path(toy.__file__).read_text()

    reports = conforms(source, _ABOUT_UNKNOWN_IDS, _hasty(_STRICT_TEST, 5))

    assert reports.outcomes == {"failed": 3}, reports.text
    assert "of which 999999 is unknown, parse_status raised" in reports.text
    assert "it has ended already" in reports.text
    assert "has not ended in 5 s" in reports.text


def test_a_backend_that_reads_further_output_passes(conforms: Conforms) -> None:
    source = Path(toy.__file__).read_text()
    for right, other in _LENIENT:
        assert source.count(right) == 1, "the toy has changed"
        source = source.replace(right, other)

    reports = conforms(source, _ABOUT_UNKNOWN_IDS, _STRICT_TEST)

    assert reports.outcomes == {"passed": 3}, reports.text


def test_a_backend_that_submits_through_a_shell_passes(conforms: Conforms) -> None:
    """Read the whole script first, as some batch systems do."""
    right = 'Command(["tsubmit"], stdin=script.text, unset=["TOY_*"])'
    check = 'all=$(cat); case $all in *"exit 125") printf "%s\\n" "$all" | tsubmit; esac'
    source = Path(toy.__file__).read_text()
    assert source.count(right) == 1, "the toy has changed"

    source = source.replace('["tsubmit"]', repr(["sh", "-c", check]))
    reports = conforms(source, "found_by_its_tag")

    assert reports.outcomes == {"passed": 1}, reports.text


_SUBMITTING = "submit_command or ambiguous_submission_runs or ambiguous_submission_is"


@pytest.mark.parametrize("command", ["", "tsubmti"])
def test_an_unknown_submit_command_fails(conforms: Conforms, command: str) -> None:
    test = _TEST.replace('"tsubmit"', repr(command))

    reports = conforms(Path(toy.__file__).read_text(), _SUBMITTING, test)

    assert reports.outcomes == {"failed": 7}, reports.text
    assert f"submit_command is {command!r}; it must be the command that submits" in reports.text


@pytest.mark.parametrize(
    ("right", "expected_text"),
    [('"TOY_JOB_ID"', "'not set'"), ("", "its capabilities name no id_variable")],
    ids=["wrong", "none"],
)
def test_a_variable_without_the_id_fails(conforms: Conforms, right: str, expected_text: str) -> None:
    source = Path(toy.__file__).read_text()
    source = source.replace('id_variable="TOY_JOB_ID"', 'id_variable="TOYJOB"' if right else 'id_variable=""')

    reports = conforms(source, "knows_its_native_id")

    assert expected_text in reports.text
    assert not right or "id_variable is 'TOYJOB'; in the running job 1" in reports.text


def test_a_job_that_does_not_end_quotes_the_warnings(conforms: Conforms) -> None:
    source = Path(toy.__file__).read_text()
    source = source.replace("return _observations(result)", "raise KeyError(native_ids)", 1).replace(
        "parse_status(result: CommandResult)", "parse_status(result: CommandResult, native_ids: object)"
    )

    # seconds within which a poll takes place, on a busy host too
    reports = conforms(
        source,
        "unknown_id_never",
        _hasty(_TEST, 10),
    )

    assert "jpsi has warned:" in reports.text
    assert "KeyError" in reports.text


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
def test_a_launcher_that_is_not_selected_fails(conforms: Conforms, name: str, expected_text: str) -> None:
    test = _LAUNCHER.replace("NAME", name)

    reports = conforms(Path(toy.__file__).read_text(), "name_selects", test)

    assert reports.outcomes == {"failed": 1}, reports.text
    assert expected_text in reports.text


_LAUNCHING = """
import broken
import pytest
from pathlib import Path
from jpsi_testing import LauncherConformance
from jpsi_testing.waiting import eventually

class TestLauncher(LauncherConformance):
    launcher_name = "broken"
    plugin = broken
    max_processes = 2

    def wait_until(self, condition, what):
        # what never comes is not waited for
        assert eventually(condition, 1 if "no process is left" in what else 60), what + ": not so"

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
        "a process exited with 7, and the others with 0; the job is COMPLETED with exit code 0",
    ),
    "a code of two": (
        "|| _code=$?",
        "|| _code=$((_code | $?))",
        "fail_differently",
        "the others with 0; the job is FAILED with exit code 7",
    ),
    "a signal is lost": (
        "|| _code=$?",
        "|| _code=1",
        "signal_ends",
        "which is the exit code 137; the job is FAILED with exit code 1",
    ),
    "no process is waited for": (
        "do wait $_pid || _code=$?; done",
        "do :; done",
        "post_launch_runs_after",
        "of 2 processes had ended",
    ),
    "a process too many": (
        '_pids="$_pids $!"',
        '"$@" </dev/null & _pids="$_pids $!"',
        "process_runs_once",
        "the launcher started 3 processes for a job of 2",
    ),
    "words of its own": (
        # before the processes start, so that the order is always the same
        "_pids=\n",
        "_pids=\necho starting\n",
        "output_is_that",
        r"each of 2 processes printed 'out\n'; the job's stdout is 'starting\nout\nout\n'",
    ),
    "input for no process": (
        '"$@" <&3',
        '"$@" </dev/null',
        "input_goes",
        "and the others nothing; they read ['', '']",
    ),
    "an environment of its own": (
        "_pids=\n",
        '_pids=\nset -- /usr/bin/env -u FROM_PRE "$@"\n',
        "pre_launch_exports_reaches",
        r"they wrote [' 1 2\n', ' 1 2\n']",
    ),
    "words are split": (
        'set -- /usr/bin/env --default-signal=INT,QUIT "$@"',
        "set -- $*",
        "paths_may_have",
        "every process exited with 0; the job is FAILED with exit code",
    ),
    "what it starts is left": (
        "trap 'kill $_pids $!; wait; exit 143' TERM\n",
        "",
        "term_leaves_no_process",
        "after TERM no process is left: not so",
    ),
    "signals are ignored": (
        "--default-signal=INT,QUIT",
        "--ignore-signal=PIPE",
        "dispositions",
        "the launcher starts processes that ignore or block SIGINT, SIGPIPE, SIGQUIT; ",
    ),
}


@pytest.mark.parametrize("mistake", LAUNCHER_MISTAKES)
def test_each_defect_of_a_launcher_fails_its_test(conforms: Conforms, mistake: str) -> None:
    right, wrong, keyword, expected_text = LAUNCHER_MISTAKES[mistake]
    assert right in _TWICE

    reports = conforms(_TWICE.replace(right, wrong), keyword, _LAUNCHING)

    assert expected_text in reports.text


def test_the_launcher_without_defects_passes_all(conforms: Conforms) -> None:
    reports = conforms(_TWICE, "test", _LAUNCHING)

    assert reports.outcomes.keys() <= {"passed", "skipped"}, reports.text
