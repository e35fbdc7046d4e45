"""Measures a preview, which looks among 100,000 executions for one that satisfies a request.

    ./dev benchmarks previewing                  in SQLite, medians of 200 previews
    ./dev benchmarks previewing --url URL        in the empty database of a PostgreSQL server
    ./dev benchmarks previewing --executions 1000

If there is none, the preview names the closest. Each execution has an output, and a preview checks that it
still exists. The program prints clock time and processor time, which other programs of the machine hardly
change.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert

from jpsi_records import Execution, ExecutionState, Records, RequestSpec, read_request_spec
from jpsi_records.files import EMPTY, collection_digest, digest_of
from jpsi_records.model import Blob, Collection, new_id, write_mount
from jpsi_records.reuse import fingerprint, preimage
from jpsi_records.store import EXECUTION, row_of

AT_ONCE = 1000
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--url")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, Records(directory, url=options.url) as records:
        _fill(records, options.executions)
        some = random.Random(1)  # noqa: S311  the same each time
        for name, first in (
            ("a result that is there", 0),
            ("a miss, with what comes close", options.executions),
        ):
            numbers = [first + some.randrange(options.executions) for _ in range(options.rounds)]
            specs = [make_spec(number) for number in numbers]
            is_hit = first == 0
            taken = sorted(_taken(records, specs, is_hit=is_hit))
            wall, processor = (statistics.median(it[kind] for it in taken) * 1000 for kind in (0, 1))
            slowest = taken[int(len(taken) * 0.95)][0] * 1000
            print(f"{name:32} {wall:6.1f} ms, 95 % within {slowest:6.1f} ms; processor {processor:6.1f} ms")


def make_spec(number: int) -> RequestSpec:
    """Return one of many requests that differ in their input."""
    text = {"kind": "text", "content": f"input {number}"}
    return read_request_spec(
        {
            "command": ["simulate", "--seed", str(number)],
            "environment": {"LC_ALL": "C"},
            "mounts": {"stdin": text, "/out": {"kind": "collection"}},
            "output_path": "/out",
        }
    )


def _fill(records: Records, count: int) -> None:
    (source := Path(records.directory, "made")).mkdir()
    for name in range(10):
        (source / str(name)).write_text(str(name))
    output = records.blobs.add_tree(source).digest
    rows = _rows(count, output)
    while some := [row for row, _ in zip(rows, range(AT_ONCE), strict=False)]:
        with records.database.writing() as tx:
            tx.connection.execute(insert(EXECUTION), some)


def _rows(count: int, output: str) -> Iterator[dict[str, object]]:
    for number in range(count):
        text = _wanted(number)
        time_ = BEGUN + timedelta(seconds=number)
        execution = Execution(
            id=new_id(time_),
            fingerprint=fingerprint(text),
            preimage=text,
            state=ExecutionState.COMPLETE,
            exit_code=0,
            output=output,
            recorded={"vcpus": 1},
            created_at=time_,
            started_at=time_,
            finished_at=time_ + timedelta(seconds=1),
        )
        yield {**row_of(execution), "program": "simulate", "is_shared": 1}


def _wanted(number: int) -> str:
    """Return the canonical key of a request, as the records resolve it."""
    mounts = {
        "stdin": write_mount(Blob(digest=digest_of(f"input {number}".encode()))),
        "/out": write_mount(Collection(digest=collection_digest(EMPTY), writable=True)),
    }
    return preimage(make_spec(number).computation, mounts)


def _taken(records: Records, specs: list[RequestSpec], *, is_hit: bool) -> Iterator[tuple[float, float]]:
    for spec in specs:
        begun, used = time.perf_counter(), time.process_time()
        plan = records.preview(spec)
        yield time.perf_counter() - begun, time.process_time() - used
        assert (plan.hit is not None) is is_hit, plan


if __name__ == "__main__":
    main()
