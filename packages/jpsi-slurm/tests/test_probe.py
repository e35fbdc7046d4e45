"""The properties of a site that its configuration reports, and the settings of the executor."""

from __future__ import annotations

import attrs
import pytest

from jpsi.plugin import SubmitException
from jpsi_slurm import hooks
from jpsi_slurm.config import SlurmConfig
from jpsi_testing import command_result
from slurm_support import SITE, recordings


def test_the_properties_of_a_site() -> None:
    config_query = next(step for step in recordings("version") if step.argv == ("scontrol", "show", "config"))

    found = hooks.parse_probe(config_query.result)

    assert hooks.probe(SITE).argv == config_query.argv
    assert found == {
        "version": [22, 5],
        "accounting": True,
        "measures_use": True,
        "requeue_exit_codes": [],
        "max_array_size": 5001,
    }


@pytest.mark.parametrize(
    ("size", "largest"), [("5001", 5000), ("2", 1), ("1", None), ("0", None), ("", 1000)]
)
def test_array_indices_are_below_the_limit_of_the_site(size: str, largest: int | None) -> None:
    offers = hooks.parse_probe(command_result(f"MaxArraySize            = {size}\n"))

    arrays = hooks.capabilities(attrs.evolve(SITE, offers=offers)).arrays

    assert (None if arrays is None else arrays.largest) == largest


@pytest.mark.parametrize(
    ("parameters", "largest"),
    [
        ("max_array_tasks=200", 200),
        ("defer,max_array_tasks=200,batch_sched_delay=3", 200),
        ("max_array_tasks=9000", 5000),
        ("defer", 5000),
        ("(null)", 5000),
        ("my_max_array_tasks=3", 5000),
    ],
)
def test_an_array_has_no_more_elements_than_a_site_allows(parameters: str, largest: int) -> None:
    output = f"MaxArraySize            = 5001\nSchedulerParameters     = {parameters}\n"

    arrays = hooks.capabilities(attrs.evolve(SITE, offers=hooks.parse_probe(command_result(output)))).arrays

    assert arrays is not None
    assert arrays.largest == largest


def test_the_requeue_exit_codes_of_a_site() -> None:
    output = "RequeueExit             = 5,100-102\nRequeueExitHold         = 200\n"

    assert hooks.parse_probe(command_result(output))["requeue_exit_codes"] == [5, 100, 101, 102, 200]


@pytest.mark.parametrize("storage", ["accounting_storage/none", "(null)"])
def test_a_site_without_accounting(storage: str) -> None:
    assert hooks.parse_probe(command_result(f"AccountingStorageType   = {storage}\n"))["accounting"] is False


def test_a_missing_configuration_is_unknown() -> None:
    assert hooks.parse_probe(command_result("nothing\n"))["accounting"] is None
    with pytest.raises(SubmitException, match="Unable to contact"):
        hooks.parse_probe(command_result(stderr="Unable to contact slurm controller\n", returncode=1))


@pytest.mark.parametrize("cluster", ["a,b", "", "a b"])
def test_one_cluster_is_configured_or_none(cluster: str) -> None:
    with pytest.raises(ValueError, match="one cluster"):
        SlurmConfig(cluster=cluster)
