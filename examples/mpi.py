"""An MPI program on several nodes.

python mpi.py EXECUTOR LAUNCHER PROGRAM [ARGUMENT...]

LAUNCHER is `mpirun` or `mpiexec`, of the MPI that the program was compiled with, or `srun`. `multiple` starts
programs that do not use MPI, on one node.
"""

from __future__ import annotations

import sys
from datetime import timedelta

import jpsi

NODES = {"local": 1}


def spec(executor: str, launcher: str, program: str, *arguments: str) -> jpsi.JobSpec:
    """Return resources of four processes with a core each on every one of two nodes, or on one node."""
    return jpsi.JobSpec(
        program,
        list(arguments),
        launcher=launcher,
        resources=jpsi.ResourceSpecV1(
            node_count=NODES.get(executor, 2), processes_per_node=4, cpu_cores_per_process=1
        ),
        attributes=jpsi.JobAttributes(duration=timedelta(minutes=30)),
    )


def main(executor: str, *what: str) -> int:
    job = jpsi.Job(spec(executor, *what))
    jpsi.JobExecutor(executor).submit(job)
    status = job.wait()
    assert status is not None
    assert job.streams is not None
    print(job.streams.stdout.read_text(), end="")
    print(status, file=sys.stderr)
    return status.exit_code or 0


if __name__ == "__main__":
    if not sys.argv[3:]:
        sys.exit("usage: python mpi.py EXECUTOR LAUNCHER PROGRAM [ARGUMENT...]")
    try:
        sys.exit(main(*sys.argv[1:]))
    except jpsi.JpsiError as error:
        sys.exit(str(error))
