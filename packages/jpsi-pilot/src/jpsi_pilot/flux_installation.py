"""Whether the engine `flux` can be used on this machine, and if not, why."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec

from importlib_metadata import entry_points

#: The versions of flux-core that this works with: from the first on, and before the second.
_FIRST, _BEFORE = (0, 58), (1, 0)
# What signs certificates.
_SIGNING = "cryptography"
_VERSION = re.compile(r"^commands:\s+([0-9]+)\.([0-9]+)", re.MULTILINE)
_PATIENCE = 60.0


def why_not() -> str:
    """Why the engine cannot be used here; empty if it can."""
    try:
        need_backend()
    except ImportError as e:
        return str(e)
    return flux_problem()


def need_backend() -> None:
    """Be content if there is what the engine needs of Python.

    Raises:
        ImportError: something is not installed.
    """
    if find_spec(_SIGNING) is None:
        msg = f"No module named {_SIGNING!r}"
        raise ImportError(msg)
    if not entry_points(group="jpsi.executors", name="flux"):
        msg = "the executor flux is not installed"
        raise ImportError(msg)


def flux_problem() -> str:
    """What is wrong with the Flux that is on PATH here; empty if nothing is."""
    try:
        done = subprocess.run(
            ["flux", "--version"],  # noqa: S607  whichever is on PATH
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except FileNotFoundError:
        return "there is no flux on PATH"
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"flux does not tell its version: {e}"
    return version_problem(done.stdout.decode(errors="replace"))


def version_problem(said: str) -> str:
    r"""What is wrong with a version, as `flux --version` tells it; empty if nothing is.

    >>> version_problem("commands:    \t\t0.88.0\n"), version_problem("commands: 0.40.1-3-gabc")
    ('', 'flux-core is 0.40, and the engine flux needs >=0.58, <1.0')
    """
    match = _VERSION.search(said)
    if match is None:
        return f"flux does not tell its version: {said.strip()!r}"
    version = (int(match[1]), int(match[2]))
    if _FIRST <= version < _BEFORE:
        return ""
    first, before = (".".join(map(str, it)) for it in (_FIRST, _BEFORE))
    return f"flux-core is {match[1]}.{match[2]}, and the engine flux needs >={first}, <{before}"
