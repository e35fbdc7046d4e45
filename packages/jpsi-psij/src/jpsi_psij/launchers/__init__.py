"""The launchers that psij names."""

from .aprun import AprunLauncher
from .jsrun import JsrunLauncher
from .mpirun import MPILauncher
from .multiple import MultipleLauncher
from .single import SingleLauncher
from .srun import SrunLauncher

__all__ = [
    "AprunLauncher",
    "JsrunLauncher",
    "MPILauncher",
    "MultipleLauncher",
    "SingleLauncher",
    "SrunLauncher",
]
