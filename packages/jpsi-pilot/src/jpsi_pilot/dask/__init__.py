"""The engine `dask`.

Dask.distributed, its scheduler in the agent, and a worker on each node of a pilot.
"""

from .engine import DaskEngine

__all__ = ["DaskEngine"]
