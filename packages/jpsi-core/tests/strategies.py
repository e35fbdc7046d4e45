"""The strategies of `jpsi_testing`, by the names that tests of the core use."""

from __future__ import annotations

from jpsi_testing import strategies
from jpsi_testing.strategies import HOSTILE

__all__ = ["HOSTILE", "job_specs", "json_values", "texts"]

texts = strategies.hostile_text()
json_values = strategies.json_values()
job_specs = strategies.specs(heterogeneous=True)
