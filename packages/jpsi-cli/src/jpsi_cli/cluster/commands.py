"""Defines the commands about a batch system, real or fake, with their options and help texts."""

from __future__ import annotations

import click

from .. import exit_codes, messages
from ..options import ATTACH_PARAMETERS, FAKE_PARAMETERS, command, executor_option, json_option


def _check_attach(*, native_id: str | None, **_: object) -> str | None:
    return None if native_id else "name a job by its native id"


def _fake(
    *, system: str | None, program: tuple[str, ...], has_accounting: bool, **options: str | None
) -> int:
    problem = _describe_fake_misuse(system, program)
    if problem is not None:
        raise click.UsageError(problem)
    try:
        from .fake import fake  # noqa: PLC0415  help and usage errors do not wait for the library
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] != "jpsi_testing":
            raise
        from jpsi.plugin import install_command  # noqa: PLC0415  as above

        messages.error(f"jpsi fake needs the package jpsi-testing; try: {install_command('jpsi-cli[fake]')}")
        return exit_codes.JPSI

    return fake(str(system), _after_dashes(program), options, has_accounting=has_accounting)


def _describe_fake_misuse(system: str | None, program: tuple[str, ...]) -> str | None:
    """Return what is missing or misplaced on the command line; None if nothing is."""
    if not system:
        return "name a batch system, and the command to run with it: jpsi fake slurm -- pytest"
    if program and program[0].startswith("-") and program[0] != "--":
        return f"{program[0]} comes after {system}; options come before it"
    if not _after_dashes(program):
        return f"no command to run with {system}; type it after --"
    return None


def _after_dashes(program: tuple[str, ...]) -> tuple[str, ...]:
    return program[1:] if program[:1] == ("--",) else program


#: `jpsi queues`
QUEUES = command(
    "queues",
    "cluster.queues:queues",
    [executor_option(), json_option()],
    short_help="Show the queues of a batch system, with their limits and states.",
    help="""Show the queues or partitions of a batch system, one a line, as it describes them now.

    A star marks the default queue, which gets jobs that name no queue. MAX TIME is the time limit of a job,
    DEFAULT TIME the limit of a job that requests none; jpsi always requests one. CORES and MEMORY are those
    of the largest node. Columns without any value are left out.
    """,
    epilog="""\b
Examples:
  jpsi queues
  jpsi queues -x pbs --json

\b
Exit codes:
  0  the queues were shown
  2  a mistake in the command line
  125  jpsi failed: the executor has no queues, or the batch system does not answer
""",
)

#: `jpsi attach`
ATTACH = command(
    "attach",
    "cluster.attach:attach",
    ATTACH_PARAMETERS,
    check=_check_attach,
    short_help="Follow any job of a batch system by its native id.",
    help="""Follow a job of a batch system to its end, and exit with its exit code.

    jpsi need not have submitted the job; of a job that it submitted, it knows the executor, the name and the
    ids. On a terminal the states of the job are shown; its output is not: jpsi logs -f follows that.
    Ctrl-C stops following and does not cancel the job.
    """,
    epilog="""\b
Examples:
  jpsi attach -x slurm 4711

\b
Exit codes are as for jpsi run; 125 if there is no such job, and 130 after Ctrl-C.
""",
)

#: `jpsi fake`
FAKE = command(
    "fake",
    _fake,
    FAKE_PARAMETERS,
    # Options end where the batch system is named.
    ends_options=True,
    options_metavar="[OPTIONS]",
    short_help="Run a command with a fake batch system, for tests.",
    help="""Run COMMAND with the commands of a fake SYSTEM, such as slurm, first on its PATH.

    Jobs are processes of this machine. When COMMAND ends, the fake ends too: it kills jobs that still run and
    removes its files. jpsi stores these jobs apart from your real ones (XDG_STATE_HOME).
    `jpsi plugins --kind fake` shows which batch systems have a fake.
    """,
    epilog="""\b
Examples:
  jpsi fake slurm -- pytest -x
  jpsi fake --slots 1 pbs -- sh -c 'echo hostname | qsub; qstat'
  jpsi fake --keep 0 slurm -- ./my-workflow

\b
Exit codes, besides those of COMMAND:
  2  a mistake in the command line
  125  there is no such fake, or it cannot start
  126, 127  COMMAND may not be executed, or was not found
""",
)
