"""Finds the engines that run jobs inside pilots, by entry points of the group `jpsi.pilot_engines`.

The agent starts by it the engine that the settings of a pilot name. As a program, the module checks if the
engine of the settings on standard input can be used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import cast

from importlib_metadata import entry_points, version

from jpsi.plugin import install_command

from . import flux_installation
from .protocol import EngineMaker, PilotEngine, Settings

GROUP = "jpsi.pilot_engines"
_DASK_PACKAGES = ("distributed", "cryptography")


class EngineMissing(Exception):
    """No engine of this name can be used; the message says what to install."""


def dask(changed: Callable[[], None], settings: Settings) -> PilotEngine:
    """Return the engine `dask`; its entry point exists even if dask is not installed."""
    from .dask import DaskEngine  # noqa: PLC0415  imports all of dask

    return DaskEngine(changed, settings)


def flux(changed: Callable[[], None], settings: Settings) -> PilotEngine:
    """Return the engine `flux`; its entry point exists even if Flux is not installed."""
    from .flux import FluxEngine  # noqa: PLC0415  imports the library that signs certificates

    flux_installation.check_backend()
    return FluxEngine(changed, settings)


def usable_engines() -> frozenset[str]:
    """Return the names of the engines that this machine can probably use, without starting any."""
    found = {it.name for it in entry_points(group=GROUP)}
    if not all(map(find_spec, _DASK_PACKAGES)):
        found.discard("dask")
    if "flux" in found and flux_installation.find_problem():
        found.discard("flux")
    return frozenset(found)


def new_engine(changed: Callable[[], None], settings: Settings) -> PilotEngine:
    """Return the engine that these settings name, not yet started; without a name, flux if usable, else dask.

    Raises:
        EngineMissing: the engine is not installed, or something that it needs is not.
    """
    name = settings.engine or ("dask" if flux_installation.find_problem() else "flux")
    found = {it.name: it for it in entry_points(group=GROUP)}
    if name not in found:
        raise EngineMissing(f"no pilot engine {name!r}; installed: {', '.join(sorted(found)) or 'none'}")
    try:
        return cast("EngineMaker", found[name].load())(changed, settings)
    except ImportError as e:
        msg = f"the pilot engine {name!r} cannot be used: {e}; try: {install_command(f'jpsi-pilot[{name}]')}"
        raise EngineMissing(msg) from e


def main() -> int:
    """Print the version, and the engine that the agent would start, or why it cannot start one."""
    try:
        engine = new_engine(lambda: None, Settings.from_dict(json.load(sys.stdin)))
    except EngineMissing as e:
        sys.stderr.write(f"{e}\n")
        return 1
    sys.stdout.write(f"jpsi-pilot {version('jpsi-pilot')}, engine {engine.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
