"""The tests on a real Grid Engine; `nox -s e2e_gridengine` brings it up."""

from __future__ import annotations
