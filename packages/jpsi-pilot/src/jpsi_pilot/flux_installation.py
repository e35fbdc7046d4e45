"""Checks if the engine `flux` of pilots can be used on this machine.

The module `engines` calls it before it starts an engine: without a usable Flux it starts the engine `dask`,
or reports what is missing. `flux.node` checks the Flux of each node.
"""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec

from importlib_metadata import entry_points

#: The supported versions of flux-core: from the first on, and before the second.
_MIN_VERSION, _MAX_VERSION = (0, 58), (1, 0)
# The library that signs certificates.
_CERTIFICATE_LIBRARY = "cryptography"
_VERSION = re.compile(r"^commands:\s+([0-9]+)\.([0-9]+)", re.MULTILINE)
_TIMEOUT = 60.0


def find_problem() -> str:
    """Return why the engine cannot be used on this machine; an empty text if it can."""
    try:
        check_backend()
    except ImportError as e:
        return str(e)
    return flux_problem()


def check_backend() -> None:
    """Raise if a Python package that the engine needs is missing.

    Raises:
        ImportError: a package is not installed.
    """
    if find_spec(_CERTIFICATE_LIBRARY) is None:
        raise ImportError(f"No module named {_CERTIFICATE_LIBRARY!r}")
    if not entry_points(group="jpsi.executors", name="flux"):
        raise ImportError("the executor flux is not installed")


def flux_problem() -> str:
    """Return a problem with the Flux on PATH of this machine; an empty text if there is none."""
    try:
        completed = subprocess.run(
            ["flux", "--version"],  # noqa: S607  whichever is on PATH
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        return "there is no flux on PATH"
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"`flux --version` failed: {e}"
    return version_problem(completed.stdout.decode(errors="replace"))


def version_problem(output: str) -> str:
    r"""Return a problem with the version in the output of `flux --version`; an empty text if there is none.

    >>> version_problem("commands:    \t\t0.88.0\n"), version_problem("commands: 0.40.1-3-gabc")
    ('', 'flux-core is 0.40, and the engine flux needs >=0.58, <1.0')
    """
    match = _VERSION.search(output)
    if match is None:
        return f"the output of `flux --version` has no version: {output.strip()!r}"
    version = (int(match[1]), int(match[2]))
    if _MIN_VERSION <= version < _MAX_VERSION:
        return ""
    lowest, limit = (".".join(map(str, it)) for it in (_MIN_VERSION, _MAX_VERSION))
    return f"flux-core is {match[1]}.{match[2]}, and the engine flux needs >={lowest}, <{limit}"
