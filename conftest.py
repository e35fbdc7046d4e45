"""What the tests of all packages have in common."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing of what it proves, and is anything on a machine that is busy.
settings.register_profile("jpsi", deadline=None)
settings.load_profile("jpsi")
