"""The example examples/site-policy: a site's override of this executor, installed as its README says."""

from __future__ import annotations

import os
import select
import shutil
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest

import jpsi
from jpsi import notifier
from jpsi_slurm.config import SlurmConfig
from jpsi_testing import FakeTransport, PluginDirectory
from jpsi_testing.fake import FakeScheduler

EXAMPLE = Path(__file__).parents[3] / "examples" / "site-policy"
MODULE = "site_policy.py"
PATIENCE = 60.0
PATIENCE = 60


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a home directory that has only the configuration of the test."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.delenv("JPSI_CONFIG", raising=False)
    return home


@pytest.fixture(params=["package", "file"])
def policy(home: Path, request: pytest.FixtureRequest) -> None:
    """Return the policy, installed in both ways."""
    request.getfixturevalue(request.param)


@pytest.fixture
def package(plugin_directory: PluginDirectory) -> None:
    """Install the package as `pip install --target` does."""
    project = tomllib.loads(EXAMPLE.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugin_directory.add(
        project["name"],
        project["version"],
        entry_points=project["entry-points"],
        files={MODULE: EXAMPLE.joinpath(MODULE).read_text(encoding="utf-8")},
    )


@pytest.fixture
def file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the module to the user's configuration folder."""
    monkeypatch.delenv("JPSI_PLUGIN_PATH", raising=False)
    overrides = home / ".config" / "jpsi" / "overrides"
    overrides.mkdir(parents=True)
    shutil.copyfile(EXAMPLE / MODULE, overrides / "slurm.py")


@pytest.fixture
def slurm() -> Iterator[FakeScheduler]:
    """Return the fake Slurm, whose jobs run."""
    with FakeScheduler() as scheduler:
        yield scheduler


@pytest.fixture
def submit(policy: None, slurm: FakeScheduler, tmp_path: Path) -> Iterator[Callable[..., jpsi.Job]]:
    """Return a function that submits a job of a project to the fake Slurm."""
    transport = FakeTransport(slurm, "slurm")
    config = SlurmConfig(work_directory=tmp_path / "work", longest_interval=timedelta(seconds=0.3))
    with jpsi.JobExecutor.get_instance("slurm", url=transport.url, config=config) as executor:
        jobs: list[jpsi.Job] = []

        def submit(project: str | None, executable: str = "/bin/true") -> jpsi.Job:
            job = jpsi.Job(jpsi.JobSpec(executable, attributes=jpsi.JobAttributes(project_name=project)))
            executor.submit(job)
            jobs.append(job)
            return job

        yield submit
        # the observer must not write to the home directory of the next test
        assert all(job.wait(PATIENCE) for job in jobs)
        assert notifier.shared().drain(PATIENCE)


def test_every_script_names_the_account_that_pays(
    submit: Callable[..., jpsi.Job], slurm: FakeScheduler
) -> None:
    job = submit("ocean")

    script = slurm.job(job.native_id or "").script
    accounts = [line for line in script.splitlines() if "account" in line]
    assert accounts == ["#SBATCH --account=proj1"]


@pytest.mark.parametrize(("project", "mistake"), [(None, "this job names none"), ("x", "there is no 'x'")])
def test_a_job_without_a_project_of_the_site_is_refused(
    submit: Callable[..., jpsi.Job], slurm: FakeScheduler, project: str | None, mistake: str
) -> None:
    with pytest.raises(jpsi.InvalidJobException) as raised:
        submit(project)

    advice = "set project_name to one of climate, ocean, proteins"
    assert raised.value.problems == (f"jobs need a project here, and {mistake}: {advice}",)
    assert slurm.jobs == []


def test_ended_jobs_are_counted(home: Path, submit: Callable[..., jpsi.Job]) -> None:
    with Lines(home / ".local/state/site-policy/ended") as counted:
        submit("ocean")
        submit("ocean")
        submit("climate", "/bin/false")

        lines = counted.read(3)

    assert Counter(lines) == {"ocean COMPLETED": 2, "climate FAILED": 1}


class Lines:
    """A file whose lines a test can wait for."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
        # opened for writing too, or reading would end with each of its writers
        self._fd = os.open(path, os.O_RDWR)

    def read(self, count: int) -> list[str]:
        text = b""
        while text.count(b"\n") < count:
            assert select.select([self._fd], [], [], PATIENCE)[0], f"no more than {text!r} came"
            text += os.read(self._fd, 4096)
        return text.decode().splitlines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
