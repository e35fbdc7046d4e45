"""Parsl's provider on jpsi: runs the blocks of a Parsl program on any executor of jpsi.

`HighThroughputExecutor(provider=JpsiProvider("slurm", nodes_per_block=2, exclusive=True))`.
"""

from .provider import JpsiProvider

__all__ = ["JpsiProvider"]
