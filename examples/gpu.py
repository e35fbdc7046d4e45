"""A job with GPUs, one for each process, and memory.

python gpu.py EXECUTOR

On Slurm, `slurm.constraint` chooses the kind of node; other batch systems take no notice of that.
"""

from __future__ import annotations

import sys
from datetime import timedelta

import jpsi

# The batch system sets the GPUs of a process in a variable: this one for those of NVIDIA.
COMMAND = ["-c", 'echo "GPUs: ${CUDA_VISIBLE_DEVICES:-none}"']


def spec() -> jpsi.JobSpec:
    """Return a job of one process with eight cores, two GPUs and 32 GiB."""
    return jpsi.JobSpec(
        "/bin/sh",
        COMMAND,
        name="on-gpu",
        resources=jpsi.ResourceSpecV1(
            process_count=1, cpu_cores_per_process=8, gpu_cores_per_process=2, memory=32 * 2**30
        ),
        attributes=jpsi.JobAttributes(
            duration=timedelta(hours=1), custom_attributes={"slurm.constraint": "a100"}
        ),
    )


def main(name: str | None = None) -> None:
    job = jpsi.Job(spec())
    jpsi.JobExecutor(name).submit(job)
    print(job.wait())
    if job.streams is not None:
        print(job.streams.stdout.read_text(), end="")


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit("usage: python gpu.py [EXECUTOR]")
    try:
        main(*sys.argv[1:])
    except jpsi.JpsiError as error:
        sys.exit(str(error))
