"""The commands of fakes, called in this process and on PATH, and their faults."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import jpsi
from jpsi.plugin import CommandResult
from jpsi_testing import PluginDirectory, toy_fake
from jpsi_testing.fake import (
    NO_ANSWER,
    CommandFunction,
    FakeClock,
    FakeScheduler,
    Invocation,
    Outcome,
    answer,
    find_fake,
    on_path,
)


class Echo:
    """A fake of commands that do little."""

    def __init__(self) -> None:
        self.calls = 0
        self.commands: Mapping[str, CommandFunction] = {
            "esay": self._print_argument,
            "eread": self._read,
            "ebreak": self._break,
            "eend": self._end,
        }

    def unreachable(self, command: str) -> CommandResult:
        return CommandResult(returncode=3, stderr=f"{command}: no scheduler\n")

    def _print_argument(self, _: FakeScheduler, call: Invocation) -> CommandResult:
        self.calls += 1
        text = "\n".join([*call.arguments, call.environment.get("SAID", ""), call.directory])
        return CommandResult(returncode=0, stdout=text)

    def _read(self, _: FakeScheduler, call: Invocation) -> CommandResult:
        return CommandResult(returncode=7, stdout=call.stdin, stderr=str(len(call.stdin)))

    def _break(self, *_: object) -> CommandResult:
        msg = "a mistake"
        raise ZeroDivisionError(msg)

    def _end(self, _: FakeScheduler, call: Invocation) -> CommandResult:
        return CommandResult(returncode=int(call.arguments[0]))


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(1000), outcome=Outcome(60)) as scheduler:
        yield scheduler


@pytest.fixture
def path(echo: Echo, scheduler: FakeScheduler) -> Iterator[FakeScheduler]:
    with on_path(echo, scheduler) as found:
        yield found


def call(scheduler: FakeScheduler, echo: Echo, *argv: str) -> CommandResult:
    return answer(scheduler, echo, Invocation(argv=argv, directory="/x"))


def run(*argv: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=30, **options)  # type: ignore[call-overload,no-any-return]  # options of subprocess.run


def test_every_call_is_logged_with_its_time(scheduler: FakeScheduler, echo: Echo) -> None:
    call(scheduler, echo, "/usr/bin/esay", "a")
    scheduler.clock.advance(5)  # type: ignore[attr-defined]  # it is a FakeClock
    scheduler.faults.hang("esay")
    call(scheduler, echo, "esay", "b")

    assert [(it.time, it.invocation.argv) for it in scheduler.log] == [
        (1000, ("esay", "a")),
        (1005, ("esay", "b")),
    ]
    assert scheduler.log.count("esay") == len(scheduler.log.of("esay")) == 2
    assert scheduler.log.count("eread") == 0


def test_a_missing_command_is_an_error(scheduler: FakeScheduler, echo: Echo) -> None:
    with pytest.raises(KeyError, match="nothing"):
        call(scheduler, echo, "nothing")


def test_faults_affect_only_their_command_and_the_given_number_of_calls(
    scheduler: FakeScheduler, echo: Echo
) -> None:
    scheduler.faults.fail("esay", times=2, returncode=5, stdout="o", stderr="e")
    scheduler.faults.hang("esay")

    assert call(scheduler, echo, "eend", "0").returncode == 0
    assert [call(scheduler, echo, "esay") for _ in range(3)] == [
        CommandResult(returncode=5, stdout="o", stderr="e"),
        CommandResult(returncode=5, stdout="o", stderr="e"),
        NO_ANSWER,
    ]
    assert echo.calls == 0
    assert call(scheduler, echo, "esay").returncode == 0


@pytest.mark.parametrize("fault", ["fail", "hang", "accept_and_hang", "cut"])
def test_a_fault_of_an_unknown_command_is_refused(path: FakeScheduler, fault: str) -> None:
    """Such a fault would affect no call, and its test would test nothing."""
    for command in ("", "esya"):
        with pytest.raises(ValueError, match=f"no command '{command}' can fail: .*ebreak, eend, eread"):
            getattr(path.faults, fault)(command)

    path.faults.clear()
    with pytest.raises(ValueError, match="no command"):
        getattr(path.faults, fault)("esya")


def test_a_fault_may_last_and_strike_every_command(scheduler: FakeScheduler, echo: Echo) -> None:
    scheduler.faults.fail("*", times=None)
    assert {call(scheduler, echo, name, "0").returncode for name in ["esay", "eend", "esay"]} == {1}

    scheduler.faults.clear()
    assert call(scheduler, echo, "esay").returncode == 0


def test_an_accepted_call_that_hangs_has_its_effect(scheduler: FakeScheduler, echo: Echo) -> None:
    scheduler.faults.accept_and_hang("esay")

    assert call(scheduler, echo, "esay") == NO_ANSWER
    assert echo.calls == 1


def test_a_cut_command_prints_half_of_its_output(scheduler: FakeScheduler, echo: Echo) -> None:
    scheduler.faults.cut("esay")

    assert call(scheduler, echo, "esay", "12345").stdout == "1234"
    assert echo.calls == 1
    scheduler.faults.cut("esay")
    assert call(scheduler, echo, "esay").returncode == -signal.SIGKILL


def test_a_banner_precedes_every_output(scheduler: FakeScheduler, echo: Echo) -> None:
    scheduler.faults.banner(stdout="Welcome!\n", stderr="Maintenance on Monday\n")

    result = call(scheduler, echo, "esay", "x")

    assert result.stdout.startswith("Welcome!\nx")
    assert result.stderr == "Maintenance on Monday\n"


def test_down_gives_the_error_of_the_fake(scheduler: FakeScheduler, echo: Echo) -> None:
    scheduler.faults.down()
    assert call(scheduler, echo, "esay") == CommandResult(returncode=3, stderr="esay: no scheduler\n")
    scheduler.faults.down(hangs=True)
    assert call(scheduler, echo, "esay") == NO_ANSWER
    scheduler.faults.up()

    assert call(scheduler, echo, "esay").returncode == 0
    assert echo.calls == 1


def test_a_missing_fake_names_the_installed_ones() -> None:
    with pytest.raises(jpsi.PluginError, match=r"no fake 'nothing'; installed: .*toy"):
        find_fake("nothing")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "has no `commands`, a mapping of names to functions and no function `unreachable`"),
        ("commands = ['asub']\ndef unreachable(command): ...", "has no `commands`, a mapping"),
        ("commands = {}", "acme has no function `unreachable`"),
    ],
    ids=["nothing", "no mapping", "no unreachable"],
)
def test_an_invalid_fake_is_an_error(plugin_directory: PluginDirectory, source: str, message: str) -> None:
    plugin_directory.add("acme", entry_points={"jpsi.fakes": {"acme": "acme"}}, files={"acme.py": source})

    with pytest.raises(jpsi.PluginError) as caught:
        find_fake("acme")

    assert "the fake 'acme' of acme 1.0 in" in str(caught.value)
    assert message in str(caught.value)


def test_fakes_are_found_by_name() -> None:
    assert find_fake("TOY") is toy_fake


# On PATH.


def test_a_command_gets_its_arguments_unchanged(path: FakeScheduler, tmp_path: Path) -> None:
    words = ["a b", "", "$(x)", "'", "\n", "ü", "\udcff"]

    result = subprocess.run(
        ["esay", *words], check=True, capture_output=True, cwd=tmp_path, env={**os.environ, "SAID": "é\n"}
    )

    assert result.stdout.decode(errors="surrogateescape") == "\n".join([*words, "é\n", str(tmp_path)])
    assert path.log[0].invocation.arguments == tuple(words)


def test_standard_input_is_read_only_on_demand(path: FakeScheduler) -> None:
    text = "x" * 200_000 + "é"

    assert run("eread", input=text).stdout == text
    assert run("sh", "-c", "esay; cat", input="left alone").stdout.endswith("left alone")


@pytest.mark.parametrize("code", [0, 1, 255, -9, -15])
def test_exit_codes_and_signals_arrive(path: FakeScheduler, code: int) -> None:
    assert run("eend", str(code)).returncode == code


def test_an_error_in_a_fake_is_reported(path: FakeScheduler) -> None:
    result = run("ebreak")

    assert (result.returncode, result.stderr) == (70, "ZeroDivisionError in the fake command: a mistake\n")


def test_a_hanging_command_hangs_until_it_is_killed(path: FakeScheduler, echo: Echo) -> None:
    path.faults.hang("esay")
    process = subprocess.Popen(["esay"])

    assert path.wait_for(lambda: path.log.count("esay"))
    assert run("esay").returncode == 0
    assert process.poll() is None
    process.kill()
    process.wait()
    assert echo.calls == 1


def test_a_command_that_hangs_at_the_end_fails(scheduler: FakeScheduler, echo: Echo) -> None:
    with on_path(echo, scheduler):
        scheduler.faults.hang("esay")
        process = subprocess.Popen(["esay"], stderr=subprocess.PIPE, text=True)
        assert scheduler.wait_for(lambda: scheduler.log.count("esay"))

    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (255, "esay: the fake batch system has ended\n")


def test_the_commands_are_private_and_removed(scheduler: FakeScheduler, echo: Echo) -> None:
    before = os.environ["PATH"]
    with on_path(echo, scheduler):
        folder = Path(os.environ["PATH"].split(os.pathsep)[0]).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    assert os.environ["PATH"] == before
    assert not folder.exists()


def test_long_directories_and_blanks_are_no_obstacle(
    echo: Echo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "it's a very long path" / ("x" * 200) / "python 3"
    interpreter.parent.mkdir(parents=True)
    interpreter.symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "executable", str(interpreter))
    monkeypatch.setattr("tempfile.tempdir", str(interpreter.parent))

    with on_path(echo):
        assert run("esay", "a").stdout.startswith("a\n")


def test_two_batch_systems_may_be_on_path_at_once(echo: Echo) -> None:
    with on_path("toy") as toy, on_path(echo) as other:
        run("tstat")
        run("esay")

    assert (len(toy.log), len(other.log)) == (1, 1)
