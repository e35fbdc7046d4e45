"""Dask's cluster on jpsi: its workers are jobs of any executor of jpsi.

`Client(JpsiCluster(executor="slurm", cores=8, memory="16GB"))`. It is a cluster of dask-jobqueue; the section
`jobqueue.jpsi` of Dask's configuration has its defaults.
"""

from importlib.resources import files

import dask
import yaml

from .cluster import JpsiCluster
from .job import JpsiJob

__all__ = ["JpsiCluster", "JpsiJob"]

dask.config.update_defaults(yaml.safe_load(files(__name__).joinpath("jobqueue.yaml").read_text("utf-8")))
