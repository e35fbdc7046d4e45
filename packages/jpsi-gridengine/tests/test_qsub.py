from __future__ import annotations

import pytest

from gridengine_support import CONTEXT
from jpsi.plugin import Script
from jpsi_gridengine import hooks
from jpsi_testing import command_result


def test_qsub_reads_the_script_from_standard_input_despite_user_defaults() -> None:
    command = hooks.submit(Script([]))

    assert command.argv == ("qsub", "-terse", "-b", "n", "-sync", "n")
    assert command.stdin == Script([]).text


def test_only_variables_that_locate_grid_engine_are_inherited() -> None:
    unset = hooks.submit(Script([])).unset

    assert {"JOB_*", "PE_*", "SGE_TASK_*", "SGE_O_*", "BASH_FUNC_*", "PMI_*"} <= set(unset)
    for kept in ("SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "PATH"):
        assert not any(kept == it or (it.endswith("*") and kept.startswith(it[:-1])) for it in unset)


def test_no_time_zone_reaches_the_job() -> None:
    assert hooks.submit(Script([])).environment == {}


@pytest.mark.parametrize(
    "printed",
    ["17\n", "Welcome 12345!\n17\n", 'Your job 17 ("a ("b").c") has been submitted\n', "17\n17\n"],
)
def test_the_id_in_the_output_is_found(printed: str) -> None:
    assert hooks.parse_submit(command_result(printed), CONTEXT) == "17"


@pytest.mark.parametrize("printed", ["", "hello\n", "17\n18\n", "17.1-3:1\n", "0\n", "x 17\n"])
def test_output_without_exactly_one_id_is_an_error(printed: str) -> None:
    with pytest.raises(ValueError, match="job id"):
        hooks.parse_submit(command_result(printed), CONTEXT)
