from __future__ import annotations

from pathlib import Path

from jpsi_cli.cluster.attach import array_elements
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
