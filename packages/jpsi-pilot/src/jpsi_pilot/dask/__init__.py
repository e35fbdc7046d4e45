"""The engine `dask`: the scheduler of dask.distributed in the agent, and a worker on each node of a pilot."""

from .engine import DaskEngine
