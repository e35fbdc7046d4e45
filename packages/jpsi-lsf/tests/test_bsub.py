"""Submission by bsub, and the id in its output."""

from __future__ import annotations

import pytest

from jpsi.plugin import JobSpec, ShellLine
from jpsi_engine.host.local_transport import environment_of
from jpsi_lsf import hooks
from jpsi_testing import command_result
from lsf_support import CONTEXT


def test_bsub_reads_directives_only_from_standard_input() -> None:
    text = hooks.render_script(JobSpec("/bin/true"), CONTEXT)
    command = hooks.submit(type(text)(text.directives, ShellLine("exec /bin/sh run")))

    assert command.argv == ("bsub",)
    assert command.stdin is not None
    assert command.stdin.endswith("exec /bin/sh run\n")
    assert command.environment == {"LSB_NTRIES": "1"}


def test_bsub_inherits_no_variables_of_other_jobs() -> None:
    inherited = dict.fromkeys(
        (
            *("BSUB_QUIET", "BSUB_CHK_RESREQ", "LSB_JOBID", "LSB_DJOB_HOSTFILE", "LSB_HOSTS", "LSB_SUB_HOST"),
            *("LS_SUBCWD", "LS_JOBPID", "PMI_RANK"),
        ),
        "x",
    )
    kept = {"LSF_ENVDIR": "/etc", "LSB_DEFAULTQUEUE": "q", "LSB_DEFAULTPROJECT": "p", "LS_COLORS": "c"}

    found = environment_of(
        hooks.submit(hooks.render_script(JobSpec("/bin/true"), CONTEXT)), {**inherited, **kept}
    )

    assert found == {**kept, "LSB_NTRIES": "1"}


@pytest.mark.parametrize(
    "stdout",
    [
        "Job <4711> is submitted to queue <normal>.",
        "Job <4711> is submitted to default queue <normal>.",
        "INFO: budget 12 <left>\nJob <4711> is submitted to queue <q>.\nBye <12>",
        "LSF: Job <4711> is submitted to queue <normal>.",
    ],
)
def test_the_id_is_found_within_other_text(stdout: str) -> None:
    assert hooks.parse_submit(command_result(stdout)) == "4711"


@pytest.mark.parametrize(
    "stdout",
    ["Job <12>: No such job", "Job <1> is submitted to queue <a>.\nJob <2> is submitted to queue <a>."],
)
def test_output_without_exactly_one_id_is_an_error(stdout: str) -> None:
    with pytest.raises(ValueError, match="job id"):
        hooks.parse_submit(command_result(stdout))
