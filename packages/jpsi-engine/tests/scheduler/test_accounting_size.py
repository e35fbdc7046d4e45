"""The number of jobs in one accounting query, which the backend declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest

from jpsi.plugin import (
    NOT_OFFERED,
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    JobState,
    Observation,
)
from jpsi.plugin.engine import EngineSetup
from jpsi_engine.scheduler.backend import Backend


def _backend(capabilities: Capabilities) -> Backend:
    def parse_finished(
        result: CommandResult, native_ids: Sequence[str], site: object
    ) -> Mapping[str, Observation]:
        return {it: Observation(state=JobState.COMPLETED, native_state=result.stdout) for it in native_ids}

    hooks = SimpleNamespace(
        probe=lambda site: NOT_OFFERED,
        capabilities=lambda site: capabilities,
        canonical_id=lambda native_id, site: native_id,
        query_finished=lambda native_ids, site: Command(["query", *native_ids]),
        parse_finished=parse_finished,
    )
    transport = SimpleNamespace(
        run=lambda command: CommandResult(returncode=0, stdout=" ".join(command.argv))
    )
    setup = EngineSetup(
        executor="acme",
        version="1",
        config=BatchConfig(),
        transport=transport,  # type: ignore[arg-type]  # all that is needed of one
        publish=lambda _id, _status: None,
        process_engine=lambda _setup: None,  # type: ignore[arg-type,return-value]  # as above
    )
    return Backend(setup, hooks)  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("sizes", "queried"),
    [
        ({"ids_per_query": 2}, {"query 1 2", "query 3"}),
        ({"ids_per_query": None}, {"query 1 2 3"}),
        ({"ids_per_query": None, "ids_per_accounting": 1}, {"query 1", "query 2", "query 3"}),
        ({"ids_per_query": 1, "ids_per_accounting": 2}, {"query 1 2", "query 3"}),
    ],
)
def test_accounting_queries_name_at_most_the_declared_number_of_jobs(
    sizes: dict[str, int | None], queried: set[str]
) -> None:
    backend = _backend(Capabilities(default_launcher="single", **sizes))  # type: ignore[arg-type]  # its fields

    found = backend.query_accounting(["1", "2", "3"])

    assert found is not None
    assert {it.native_state for it in found.values()} == queried
    assert set(found) == {"1", "2", "3"}
