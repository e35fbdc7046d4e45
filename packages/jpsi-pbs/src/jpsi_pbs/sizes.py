"""The units in which PBS takes and prints amounts of memory."""

from __future__ import annotations

#: pbs_resources(7B), size; w is a word of 8 bytes
UNITS = {"": 1, "b": 1, "B": 1} | {
    spelling: size << 10 * power
    for power, prefix in enumerate(("", "k", "m", "g", "t", "p"))
    for unit, size in (("b", 1), ("w", 8))
    for spelling in (f"{prefix}{unit}", f"{prefix}{unit}".upper())
}
