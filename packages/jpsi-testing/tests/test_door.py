"""The names of `jpsi_testing` and its pytest plugin, which cost nothing if they are not used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jpsi
import jpsi_testing
from jpsi.model.spec_problems import problems
from jpsi_testing import PluginDirectory, fake
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState


def test_the_exported_names_are_pinned() -> None:
    assert set(fake.__all__) == {
        "NO_ANSWER",
        "Arguments",
        "Call",
        "CommandError",
        "CommandFunction",
        "FakeSystem",
        "FakeClock",
        "FakeJob",
        "FakeScheduler",
        "FakeState",
        "Faults",
        "Invocation",
        "Log",
        "OptionTable",
        "Outcome",
        "Task",
        "TaskLaunch",
        "read_stdin",
        "receive",
        "result_fields",
        "run_tasks",
        "send",
        "write_commands",
        "answer",
        "call_command",
        "command_folder",
        "find_fake",
        "join_lines",
        "limit",
        "mpirun_commands",
        "node_name",
        "on_path",
        "parse_dashed",
        "parse_letters",
        "refuse_if",
        "wait_for_jobs",
        "SPEC",
        "Speaker",
        "SpokenQueue",
        "inherited_variables",
        "interpreter",
        "lost_attributes",
        "script_command",
        "with_command",
    }
    assert set(jpsi_testing.__all__) == {
        "HOSTILE",
        "RemoteTransport",
        "ExecutorConformance",
        "FakeTransport",
        "PYTHON_WORDS",
        "LauncherConformance",
        "PluginDirectory",
        "Recording",
        "ReplayTransport",
        "command_result",
        "custom_names",
        "directories",
        "durations",
        "environment_names",
        "environments",
        "heterogeneous_resources",
        "executor_hooks",
        "hostile_text",
        "job_attributes",
        "job_names",
        "json_values",
        "paths",
        "read_recordings",
        "resource_specs",
        "specs",
        "corrupted_documents",
    }
    assert all(getattr(jpsi_testing, name) is not None for name in jpsi_testing.__all__)
    assert set(jpsi_testing.__all__) <= set(dir(jpsi_testing))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        jpsi_testing.nonsense  # noqa: B018  the access is the test


def test_the_pytest_plugin_imports_nothing_heavy() -> None:
    program = (
        "import sys, jpsi_testing.pytest_plugin\n"
        "bad = [m for m in sys.modules if m.startswith(('jpsi_testing.fake', 'jpsi.registry',"
        " 'jpsi.executor', 'jpsi_engine', 'hypothesis', 'pluggy._x', 'yaml', 'jpsi_testing.c'))]\n"
        "assert not bad, bad\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


def test_fakes_need_neither_pytest_nor_an_engine() -> None:
    program = (
        "import sys, jpsi_testing.fake\n"
        "host = [m for m in sys.modules if m == 'jpsi_engine' or m.startswith('jpsi_engine.host')]\n"
        "bad = [m for m in sys.modules.keys() - set(host) if m.startswith(('pytest', 'hypothesis',"
        " 'jpsi.registry', 'jpsi.executor', 'jpsi_engine', 'jpsi_testing.conformance'))]\n"
        "assert not bad, bad\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_fake_scheduler_follows_the_fake_clock(
    fake_scheduler: FakeScheduler, fake_clock: FakeClock
) -> None:
    job = fake_scheduler.submit(fake.FakeJob("1"))
    assert job.state is FakeState.RUNNING

    fake_clock.advance(60)

    assert fake_scheduler.job("1").state.final


def test_fake_commands_are_on_path(fake_commands: Callable[..., FakeScheduler]) -> None:
    scheduler = fake_commands("toy")

    done = subprocess.run(["tstat", "--all"], check=True, capture_output=True, text=True)

    assert done.stdout.splitlines()[1:] == ["0 lines"]
    assert scheduler.log.count("tstat") == 1


def test_fake_commands_keep_jobs_apart_from_the_users_own(
    fake_commands: Callable[..., FakeScheduler],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    fake_commands("toy")

    assert Path(os.environ["XDG_STATE_HOME"]).is_relative_to(tmp_path_factory.getbasetemp())
    assert not list(tmp_path.iterdir()), "what a test finds there is the test's own"


def test_a_plugin_directory_offers_its_plugins(plugin_directory: PluginDirectory) -> None:
    entry_points = {"jpsi.executors": {"mine": "mine_plugin"}}
    source = (
        "from jpsi.plugin import *\n"
        "@hookimpl\n"
        "def config_class(): return ExecutorConfig\n"
        "@hookimpl\n"
        "def make_engine(setup): return setup.process_engine(setup)\n"
    )
    plugin_directory.add("mine", "0.1", entry_points=entry_points, files={"mine_plugin.py": source})
    plugin_directory.add("other", entry_points={}, requires=["jpsi-core"])

    executor = jpsi.JobExecutor.get_instance("mine", "< 0.2")

    assert str(executor.version) == "0.1"
    assert os.environ["JPSI_PLUGIN_PATH"].startswith(str(plugin_directory.path))


@given(jpsi_testing.specs())
def test_specs_are_valid(spec: jpsi.JobSpec) -> None:
    assert problems(spec) == []


@given(
    st.tuples(
        jpsi_testing.job_names(),
        jpsi_testing.hostile_text(),
        jpsi_testing.environment_names(),
        jpsi_testing.durations(),
    )
)
def test_texts_hold_no_nul(texts: tuple[str, str, str, object]) -> None:
    assert all("\0" not in text for text in texts[:3])
    assert Path(texts[2]).name == texts[2]
