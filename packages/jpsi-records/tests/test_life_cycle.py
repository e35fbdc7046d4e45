"""The specification draft's life cycle of a request and its job: twelve steps, and two clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_dispatcher import Client, Clock, finish, prepare_round, spec, start
from jpsi_records.model.entities import ExecutionState, RequestState
from jpsi_records.records.records import Records
from jpsi_records.store import executions


def runnable(server: Records) -> list[str]:
    """Return the executions that a dispatcher would try to run."""
    prepare_round(server)
    with server.database.reading() as tx:
        return [it.id for it in executions.due(tx)]


@pytest.mark.clause("records-life", "records-cancel", "records-accounting", "records-permission")
@pytest.mark.parametrize("has_roles", [False, True], ids=["one-user", "roles"])
def test_the_life_cycle_of_the_draft(
    has_roles: bool, url: str, client: Client, role: Client, clock: Clock, tmp_path: Path
) -> None:
    if has_roles and url.startswith("sqlite"):
        pytest.skip("an SQLite database has no users")
    server = client("server")
    ca, cb = (role("ca"), role("cb")) if has_roles else (client("ca"), client("cb"))
    x = spec("simulate", "--steps", "100", mounts={"/out": {"kind": "collection"}}, output_path="/out")

    # 1. Client CA creates a JobRequest JRA with priority=0.
    jra = ca.submit(x, priority=0)
    # 2. Server creates job JX and assigns JX to JRA, but does not try to run JX yet because max(priority)=0.
    assert runnable(server) == []
    jx = ca.request(jra.id).execution
    assert jx is not None
    assert (ca.execution(jx).state, ca.execution(jx).priority) == (ExecutionState.QUEUED, 0)
    # 3. Client CA presents JX to the user.
    assert ca.preview(x).hit == ca.execution(jx)
    clock.advance(10)
    # 4. Client CB creates a JobRequest JRB with priority=1.
    jrb = cb.submit(x, priority=1)
    # 5. Server assigns JX to JRB and puts JX in the execution queue with priority=1.
    assert runnable(server) == [jx]
    assert cb.request(jrb.id).execution == jx
    assert cb.execution(jx).priority == 1
    clock.advance(10)
    # 6. Client CA updates JRA with priority=2.
    assert ca.set_priority(jra.id, 2).priority == 2
    # 7. Server updates JX with priority=2.
    assert runnable(server) == [jx]
    assert cb.execution(jx).priority == 2
    clock.advance(10)
    # 8. Job JX starts.
    start(server, jx)
    assert ca.execution(jx).state is cb.execution(jx).state is ExecutionState.RUNNING
    clock.advance(10)
    # 9. Client CA updates JRA with priority=0. (This is as close as we get to a "cancel" operation.)
    assert ca.set_priority(jra.id, 0).priority == 0
    # 10. Server updates JX with priority=1. (JRB still wants this job to complete.)
    prepare_round(server)
    assert (cb.execution(jx).state, cb.execution(jx).priority) == (ExecutionState.RUNNING, 1)
    assert server.set_progress(jx, 0.5).progress == ca.execution(jx).progress == cb.execution(jx).progress
    clock.advance(10)
    # 11. Job JX finishes.
    for name in ("output", "log"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
    output, log = (server.blobs.add_tree(tmp_path / name).digest for name in ("output", "log"))
    finish(server, jx, output=output, log=log)
    # 12. Clients CA and CB have permission to read JX (ever since JX was assigned to their respective
    # JobRequests) as well as its progress indicators, output, and log.
    for of, request in ((ca, jra), (cb, jrb)):
        now = of.request(request.id)
        assert (now.state, now.outcome, now.execution) == (RequestState.FINAL, "complete", jx)
        execution = of.execution(jx)
        assert (execution.state, execution.exit_code) == (ExecutionState.COMPLETE, 0)
        for name, digest in (("output", execution.output), ("log", execution.log)):
            entry = of.blobs.manifest(digest or "")["a"]
            assert of.blobs.path(entry.digest).read_text() == name

    # And accounting has the whole history.
    begun = server.execution(jx).created_at
    history = [
        (
            it.user.partition("_")[0],
            it.priority,
            it.state.value,
            (it.start - begun).seconds,
            None if it.end is None else (it.end - begun).seconds,
        )
        for it in server.usage(execution=jx)
    ]
    assert sorted(history) == [
        ("ca", 0, "queued", 0, 20),
        ("ca", 0, "running", 40, 50),
        ("ca", 2, "queued", 20, 30),
        ("ca", 2, "running", 30, 40),
        ("cb", 1, "queued", 10, 30),
        ("cb", 1, "running", 30, 50),
    ]
