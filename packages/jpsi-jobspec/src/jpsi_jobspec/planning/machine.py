"""The hardware of this machine, by which the chooser leaves out alternatives that ask for more."""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs

from ..document import Shape

_NVIDIA = re.compile(r"nvidia[0-9]+")
# WSL has this one device for all GPUs.
_WINDOWS = "dxg"
_AMD = "sys/class/kfd/kfd/topology/nodes"


@attrs.frozen(slots=True, kw_only=True)
class Machine:
    """The hardware of a machine; None is not known. Cores are not counted: processes share them."""

    gpus: int | None = None
    #: In bytes.
    memory: int | None = None

    def find_missing(self, shape: Shape) -> str | None:
        """Return what a shape asks for that the machine does not have, or None."""
        gpus = sum(it.gpus * it.slots for it in shape.pieces or (shape,))
        if self.gpus is not None and gpus > self.gpus:
            return f"this machine has {self.gpus} GPUs of {gpus}"
        if self.memory is not None and shape.memory > self.memory:
            return f"this machine has {self.memory / 2**30:.1f} GiB of memory of {shape.memory / 2**30:g}"
        return None


def this_machine(root: Path = Path("/")) -> Machine:
    """Return the hardware of this machine, by the devices below a root directory."""
    return Machine(gpus=_gpus(root), memory=_memory())


def _gpus(root: Path) -> int | None:
    devices = {it.name for it in root.glob("dev/*")}
    if _WINDOWS in devices or not Path("/proc").exists():
        return None
    amd = sum(_has_units(it) for it in root.glob(f"{_AMD}/*/properties"))
    return amd + sum(_NVIDIA.fullmatch(it) is not None for it in devices)


def _has_units(properties: Path) -> bool:
    """Return True if a node of AMD's topology computes; those of processors have no units of this kind."""
    try:
        words = properties.read_text(encoding="utf-8").split()
    except OSError:
        return False
    return "simd_count" in words and words[words.index("simd_count") + 1] != "0"


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None
