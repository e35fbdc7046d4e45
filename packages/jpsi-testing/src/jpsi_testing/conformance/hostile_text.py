"""Conformance tests with text that a shell or a batch system may misread: jpsi passes it on or refuses it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState
from jpsi_testing.conformance.base import ExecutorTestBase, shell
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.strategies import HOSTILE

# Where jobs cost as much as names: these stand for `HOSTILE`, all of which go through the hooks of a backend.
_NAMES = (
    *(
        "a  ",
        "\t",
        "\na",
        "\r",
        "no",
        "-1",
        "# a",
        "[]",
        "*",
        "!",
        "'",
        '"',
        "\\n",
        "a\\",
        "${HOME}",
        "\x01",
        "\x7f",
    ),
    *("\x85", "\xa0", "\u2028", "\ufeff", "é", "😀", "\udc80", "#PBS -l", "a" * 200, "x" * 2000),
)
# Prints its arguments, separated by NUL.
_PRINT = "import os,sys;sys.stdout.buffer.write(bytes(1).join(map(os.fsencode, sys.argv[1:])))"
_PRINT_VARIABLES = (
    "import os,sys;sys.stdout.buffer.write(bytes(1).join(os.environb[os.fsencode(v)] for v in sys.argv[1:]))"
)
#: Lines that hold a job, make it impossible, or rename it, if a batch system takes them for directives.
_DIRECTIVES = (
    "#SBATCH --hold",
    "#SBATCH --nodes=1000000",
    "#PBS -h",
    "#BSUB -H",
    "#$ -h",
    "#OAR --hold",
    "#flux: --urgency=0",
    "#FLUX: --nodes=1000000",
    "# flux: --urgency=0",
)


class HostileTests(ExecutorTestBase):
    """Tests that neither a shell nor a batch system acts upon text of the user."""

    #: Lines that the batch system would obey in the head of a script; lines of many systems are tried anyway.
    directives: ClassVar[Sequence[str]] = ()

    @pytest.fixture
    def canary(self, tmp_path: Path) -> Path:
        """Return the path of a file that appears if text is executed."""
        return tmp_path / "canary"

    @pytest.fixture
    def texts(self, attacks: list[str]) -> list[str]:
        """Return the texts that the tests try as arguments and in the environment."""
        return [*attacks, *HOSTILE, *self._lines]

    @pytest.fixture
    def names(self, attacks: list[str], request: pytest.FixtureRequest) -> list[str]:
        """Return the texts that the tests try as names; with `--long` all of them, each of which is a job."""
        return [
            *attacks,
            *(HOSTILE if request.config.getoption("--long", default=False) else _NAMES),
            *self._lines,
        ]

    @pytest.fixture
    def attacks(self, canary: Path) -> list[str]:
        """Return texts that create the canary if a shell sees them, and others of some length."""
        touch = f"touch {canary}"
        return [
            f"$({touch})",
            f"`{touch}`",
            f"'; {touch}; '",
            f'"; {touch}; "',
            f"x\n{touch}\n",
            f"x;{touch}",
            f"x|{touch}",
            f"x & {touch} &",
            f"\\$({touch})",
            f"%s {{}} $({touch})",
            "a,b=c,d",
            "x" * 300,
        ]

    @property
    def _lines(self) -> list[str]:
        lines = [*self.directives, *_DIRECTIVES]
        return [*lines, "\n" + "\n".join(lines) + "\n"]

    @pytest.mark.clause("spec-arguments")
    def test_arguments_arrive_unchanged(
        self, executor: JobExecutor, tmp_path: Path, texts: list[str], canary: Path
    ) -> None:
        """No shell and no batch system changes an argument."""
        words = ["-c", _PRINT, *map(jpsi.escape, texts)]
        spec = JobSpec(sys.executable, words, stdout_path=tmp_path / "out")

        assert self.run(executor, spec).state is JobState.COMPLETED
        assert _read(tmp_path / "out") == texts
        assert not canary.exists()

    @pytest.mark.parametrize("inherits", [True, False])
    def test_the_environment_arrives_unchanged(
        self, executor: JobExecutor, tmp_path: Path, texts: list[str], canary: Path, inherits: bool
    ) -> None:
        """No shell and no batch system changes the value of a variable."""
        variables: dict[str, str | None] = {
            f"V{number}": jpsi.escape(text) for number, text in enumerate(texts)
        }
        spec = JobSpec(
            sys.executable,
            ["-c", _PRINT_VARIABLES, *variables],
            environment=variables,
            inherit_environment=inherits,
            stdout_path=tmp_path / "out",
        )

        assert self.run(executor, spec).state is JobState.COMPLETED
        assert _read(tmp_path / "out") == texts
        assert not canary.exists()

    @pytest.mark.clause("spec-name")
    def test_names_arrive_unchanged_or_are_refused(
        self, executor: JobExecutor, names: list[str], canary: Path, scheduler: FakeScheduler | None
    ) -> None:
        """A job's name reaches the batch system as it is, or the job is invalid."""
        specs = [JobSpec("/bin/true", name=text) for text in names if text]
        for job in self._accepted(executor, specs):
            assert job.spec is not None
            assert self.end(job).state is JobState.COMPLETED, job.spec.name
            if scheduler is not None:
                assert scheduler.job(job.native_id or "").name == self.native_name(job.spec.name or "")
        assert not canary.exists()

    @pytest.mark.clause("attributes-queue", "attributes-project")
    @pytest.mark.parametrize(("attribute", "field"), [("queue_name", "queue"), ("project_name", "project")])
    def test_queues_and_projects_arrive_unchanged_or_are_refused(
        self,
        executor: JobExecutor,
        names: list[str],
        canary: Path,
        scheduler: FakeScheduler | None,
        attribute: str,
        field: str,
    ) -> None:
        """Both reach the batch system as they are, or the job is invalid."""
        if scheduler is not None:
            # what the jobs do is of no interest
            scheduler.slots = 0
        attributes_by_text = {text: JobAttributes(**{attribute: text}) for text in names if text}  # type: ignore[arg-type]  # one of two texts
        specs = [
            JobSpec("/bin/true", name="n", attributes=attributes)
            for attributes in attributes_by_text.values()
        ]
        jobs = self._accepted(executor, specs)
        for job in jobs:
            assert job.spec is not None
            if scheduler is not None:
                scheduled = scheduler.job(job.native_id or "")
                assert getattr(scheduled, field) == getattr(job.spec.attributes, attribute)
        # a queue of that name may have no node
        executor.cancel_many(jobs)
        for job in jobs:
            self.end(job)
        assert not canary.exists()

    def test_directives_among_a_users_own_lines_direct_nothing(
        self, executor: JobExecutor, tmp_path: Path, scheduler: FakeScheduler | None
    ) -> None:
        """The batch system reads no directive in a user's command or scripts."""
        lines = "\n".join(self._lines)
        pre_launch = tmp_path / "pre launch"
        pre_launch.write_text(f"{lines}\n: '\n{lines}\n'\n")
        spec = shell(
            f"{lines}\nexit 7",
            lines,
            name="plain",
            pre_launch=pre_launch,
            environment={"LINES_OF_MINE": lines},
        )
        job = self.submit(executor, spec)

        assert self.end(job).exit_code == 7
        if scheduler is not None:
            assert scheduler.job(job.native_id or "").name == "plain"

    def _accepted(self, executor: JobExecutor, specs: Sequence[JobSpec]) -> list[Job]:
        """Submit jobs, and return the ones that the executor did not refuse."""
        jobs = []
        for spec in specs:
            job = Job(spec)
            with contextlib.suppress(jpsi.InvalidJobException):
                executor.submit(job)
                jobs.append(job)
        return jobs


def _read(path: Path) -> list[str]:
    return [text.decode(errors="surrogateescape") for text in path.read_bytes().split(b"\0")]
