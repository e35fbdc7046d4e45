"""The class of the launcher `mpirun`."""

from . import MPILauncher

__all__ = ["MPILauncher"]
