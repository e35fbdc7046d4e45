"""What holds for the tests of every package."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes tells how busy the machine is.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
