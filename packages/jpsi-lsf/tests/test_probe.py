"""The probe: the properties of a site, and output that is refused."""

from __future__ import annotations

import pytest

from jpsi.plugin import CommandResult, SubmitException
from jpsi_lsf import hooks
from jpsi_testing import command_result
from lsf_support import MODERN, site

_QUEUES = "\nQUEUE: normal\n  -- x\n\nUSERS:  all\nREQUEUE_EXIT_VALUES:  99 EXCLUDE(100)\n\nQUEUE: low\n"
_NO_JOBS = '{"COMMAND":"bjobs","JOBS":0,"RECORDS":[]}\n'
_ONE_JOB = '{"COMMAND":"bjobs","JOBS":1,"RECORDS":[{"JOBID":"7","STAT":"RUN"}]}\n'
_LSF = "IBM Spectrum LSF 10.1.0.0 build 433566, Dec 1 2016\n"
_VOLCLAVA = "volclava project 2.2, Nov 21 2026\n"


def test_the_probe_is_one_command() -> None:
    assert hooks.probe().argv[:2] == ("/bin/sh", "-c")


@pytest.mark.parametrize(
    ("stdout", "stderr", "expected"),
    [
        (_ONE_JOB, _LSF, True),
        (_NO_JOBS, _LSF, True),
        (_VOLCLAVA + _NO_JOBS, "", False),
        ("volclava project 2.3\n" + _ONE_JOB, "", False),
        (_VOLCLAVA, "<JOBINDEX> in the format string is not a valid field name.\n", False),
        ("", "Platform LSF 8.0\nbjobs: illegal option -- o\nUsage: bjobs [-h]\n", False),
    ],
    ids=["LSF", "LSF without jobs", "volclava without jobs", "volclava of tomorrow", "volclava", "older"],
)
def test_the_probe_detects_the_properties_of_lsf(stdout: str, stderr: str, expected: bool) -> None:
    found = hooks.parse_probe(command_result(stdout + _QUEUES, stderr))

    assert found == {"json": expected, "requeue_exit_codes": [99, 100], "max_job_array_size": 1000}


@pytest.mark.parametrize(
    "result",
    [
        command_result(_ONE_JOB),
        command_result(_QUEUES),
        command_result(_QUEUES, "Cannot connect to LSF. Please wait ...\n", 255),
        CommandResult(returncode=-9, stdout=_ONE_JOB, timed_out=True),
    ],
    ids=["no queues", "no jobs", "no contact", "hung"],
)
def test_a_probe_without_output_reports_no_property(result: CommandResult) -> None:
    with pytest.raises(SubmitException):
        hooks.parse_probe(result)


def test_the_requeue_exit_codes_are_those_of_queues_and_of_the_configuration() -> None:
    probed = type(MODERN)(config=site(requeue_exit_codes=[5]).config, offers={"requeue_exit_codes": [99]})

    assert hooks.capabilities(probed).requeue_exit_codes == {5, 99}


@pytest.mark.parametrize("offered", [True, False])
def test_slots_of_several_kinds_take_compound_requirements(offered: bool) -> None:
    capabilities = hooks.capabilities(site(compound_requirements=offered))

    assert capabilities.arrays is not None
    assert (capabilities.heterogeneous, capabilities.arrays.heterogeneous) == (offered, True)
