from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jpsi_cli.cluster.attach import array_elements, executor_of, named_jobs
from jpsi_cli.error_boundary import SelectionError
from jpsi_engine.job_store import Origin
from jpsi_engine.spool import ArrayMember
from stored_jobs import stored_job


def test_an_array_is_followed_on_its_own_executor_only() -> None:
    """The native id of an array is, on `local`, that of a process."""
    place = ArrayMember("array", 1)
    ours = stored_job("aaaa", "one", "1_1", place=place, array_native_id="1")
    cluster = Origin("slurm", "cluster", Path("/work/cluster"))
    others = [
        stored_job("bbbb", "one", "1_1", place=place, array_native_id="1", origin=cluster),
        stored_job("cccc", "1", "2"),
    ]

    assert array_elements("1", [ours, *others], "slurm", "") == [ours]
    assert array_elements("1", [ours, *others], "slurm", "cluster") == others[:1]
    assert array_elements("1", [ours, *others], "local", "") == []
    assert array_elements("one", [ours, *others], "slurm", "") == []


def test_a_job_is_followed_by_its_name_too() -> None:
    ours = [stored_job("aaaaaaaa1", "one", "7"), stored_job("aaaaaaaa2", "two", "8")]

    assert named_jobs("one", ours, "slurm", "") == ours[:1]
    assert named_jobs("aaaaaaaa2", ours, "slurm", "") == ours[1:2]
    assert named_jobs("one", ours, "slurm", "cluster") == []


_UNKNOWN = {"slurm": "999", "pbs": "999.fake", "torque": "999.fake", "lsf": "999", "flux": "ƒabc"}


@pytest.mark.parametrize("system", _UNKNOWN)
def test_an_id_that_the_system_calls_unknown_is_reported_at_once(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
    environment: dict[str, str],
    system: str,
) -> None:
    config = Path(environment["XDG_CONFIG_HOME"], "jpsi/config.yaml")
    config.parent.mkdir()
    config.write_text(
        f"executors: {{{system}: {{config: {{shortest_interval: 1h, longest_interval: 1h}}}}}}\n"
    )
    command = [sys.executable, "-m", "jpsi_cli", "attach", "-x", system, _UNKNOWN[system]]

    done = run("fake", system, "--", *command, timeout=60)

    assert done.returncode == 125
    assert done.stderr.decode() == (
        f"jpsi: cannot follow {_UNKNOWN[system]} on {system}: "
        "the batch system does not know the native id that was attached to\n"
    )


def test_a_word_that_can_be_no_id_is_named_with_the_system_once(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    done = run("attach", "-x", "slurm", "nonsense")

    assert done.stderr.decode() == (
        "jpsi: cannot follow nonsense on slurm: 'nonsense' is no job id of Slurm's\n"
    )


def test_the_executor_of_a_stored_job_is_known(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    jpsi = f"{shlex.quote(sys.executable)} -m jpsi_cli"
    script = f"""
        id=$({jpsi} submit -x slurm --name seven -- sh -c 'exit 7')
        {jpsi} wait $id
        {jpsi} attach $({jpsi} ls --json | sed -n 's/.*"native_id": "\\(.*\\)".*/\\1/p')
        echo $?
        {jpsi} attach seven
        echo $?
        {jpsi} release $id
    """

    done = run("fake", "slurm", "--", "sh", "-c", script)

    assert done.stdout == b"7\n7\n", done.stderr
    assert b"jpsi: its states are shown, not its output: jpsi logs -f " in done.stderr


def test_an_unknown_id_says_where_jpsi_looks(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    done = run("attach", "999999999")

    assert done.returncode == 125
    assert done.stderr.startswith(
        b"jpsi: no job of jpsi has the native id 999999999: jpsi looks on local; -x names another executor"
    )


def test_a_native_id_of_several_systems_is_ambiguous() -> None:
    cluster = Origin("slurm", "cluster", Path("/work/cluster"))
    jobs = [stored_job("aaaa", native_id="1"), stored_job("bbbb", native_id="1", origin=cluster)]

    assert executor_of("1", []) == (None, None)
    named = stored_job("aaaaaaaa-1", "sim", "9")
    assert [executor_of(it, [named])[0] for it in ("sim", "aaaaaaaa-1", "aaaa", "9")] == ["slurm"] * 4
    assert executor_of("1", jobs[:1]) == ("slurm", None)
    # the Slurm of another machine may have given the same id
    far = Origin("slurm", "ssh://login.example", Path("/work/remote"))
    assert executor_of("2", [stored_job("cccc", native_id="2", origin=far)]) == ("slurm", far.target)
    with pytest.raises(
        SelectionError, match="cluster and slurm have jobs that '1' means; name one of them with -x"
    ):
        executor_of("1", jobs)
