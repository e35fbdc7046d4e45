"""An MPI program whose ranks print their environment, its compilation, and the parser of its output."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

#: Arguments: a rank and the code that it ends with; a directory in which each rank says that it is there, and
#: then stays.
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
    int rank, size, length;
    char host[MPI_MAX_PROCESSOR_NAME], line[4096], path[4096];
    const char *set = getenv("FROM_PRE_LAUNCH");
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    length = snprintf(line, sizeof line, "%d %d %s %s\n", rank, size, host, set ? set : "unset");
    if (write(1, line, length) != length) return 99;
    MPI_Barrier(MPI_COMM_WORLD);
    if (count > 3) {
        snprintf(path, sizeof path, "%s/%d", words[3], rank);
        fclose(fopen(path, "w"));
        for (;;) sleep(1);
    }
    MPI_Finalize();
    return count > 2 && rank == atoi(words[1]) ? atoi(words[2]) : 0;
}
"""


def compiled(directory: Path, mpi: str) -> Path:
    """Compile the program with an MPI of Debian, `openmpi` or `mpich`; skip the test if it is missing."""
    for name in (f"mpicc.{mpi}", f"mpirun.{mpi}"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed; ci/mpi/up does it")
    source = directory / "program.c"
    source.write_text(SOURCE)
    # No blanks: Slurm without cgroups does not find a process whose own name has some, and never ends it.
    program = directory / f"it's-{mpi}"
    subprocess.run([f"mpicc.{mpi}", "-o", program, source], check=True)
    return program


def on_path(directory: Path, mpi: str) -> Path:
    """Return a directory in which `mpirun` and `mpiexec` are those of this MPI."""
    directory.mkdir()
    for name in ("mpirun", "mpiexec"):
        script = directory / name
        script.write_text(f'#!/bin/sh\nexec /usr/bin/{name}.{mpi} "$@"\n')
        script.chmod(0o755)
    return directory


def parse_ranks(text: str) -> list[tuple[int, int, str, str]]:
    """Return the output of each rank, sorted: its rank, the size, the host, and the variable."""
    lines = [line.split(" ", 3) for line in text.splitlines()]
    return sorted((int(rank), int(size), host, value) for rank, size, host, value in lines)


def processes_of(program: Path) -> list[int]:
    """Return the processes of this host that run the program."""
    found = []
    for link in Path("/proc").glob("[0-9]*/exe"):
        try:
            if link.readlink() == program:
                found.append(int(link.parent.name))
        except OSError:
            continue
    return found
