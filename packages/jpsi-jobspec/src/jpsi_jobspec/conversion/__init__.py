"""Conversion of workflows: from and to canonical jobspecs of Flux, and from jobs of jpsi.

Each conversion reports what it could not keep.
"""

from __future__ import annotations

from .canonical import Converted, from_canonical, to_canonical
from .jpsi_jobs import from_job
