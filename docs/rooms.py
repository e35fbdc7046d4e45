"""Draws the distributions and their rooms from what they import, while the docs are built.

    python docs/rooms.py [--check]

A room is a folder or module right below an import package. It stands right below the lowest room that imports
it, so that arrows lead downwards, and what no room imports is on the top floor. With `--check` only what is
wrong is printed: rooms that import each other in a circle, a room without a sentence, and files that
architecture.md names and that are not there.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
PACKAGES = DOCS.parent / "packages"
PAGE = DOCS / "architecture.md"
#: What is drawn, by the word that the directive `rooms` takes.
DRAWN = {"jpsi": "jpsi-core", "jpsi_engine": "jpsi-engine", "jpsi_testing": "jpsi-testing"}
#: A file or folder that the page names, such as `submission/handoff.py` or `verdict/`.
_NAMED = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.\w+)?|[\w-]+\.(?:py|md|yaml|toml))`")

Graph = Mapping[str, set[str]]


def main() -> int:
    """Print the pictures, or what is wrong."""
    found = mistakes()
    print("".join(f"{mistake}\n" for mistake in found), end="")
    if "--check" not in sys.argv[1:]:
        for what in ("distributions", *DRAWN):
            print(picture(what))
    return 1 if found else 0


def mistakes() -> list[str]:
    """Return why the page and its pictures are not to be believed."""
    found = []
    for package in DRAWN:
        try:
            floors(rooms(package))
        except ValueError as e:
            found.append(f"{package}: {e}")
        found += [f"the room {package}.{room} says in no sentence what it is for" for room in untold(package)]
    named = dict.fromkeys(_NAMED.findall(PAGE.read_text(encoding="utf-8")))
    return found + [
        f"docs/architecture.md names {name}, which is not there" for name in named if not is_there(name)
    ]


def is_there(name: str) -> bool:
    """Return True if a file or folder of this repository, or of one of its import packages, is called so."""
    return (DOCS.parent / name).exists() or name.rstrip("/") in _ends_of_paths()


@cache
def _ends_of_paths() -> set[str]:
    paths = [it.relative_to(PACKAGES).parts for where in ("*/*", "*/src/**/*") for it in PACKAGES.glob(where)]
    return {"/".join(parts[first:]) for parts in paths for first in range(len(parts))}


# ------------------------------------------------------------------------------------------- the graphs


def source(package: str) -> Path:
    """Return the folder of an import package."""
    return PACKAGES / DRAWN[package] / "src" / package


@cache
def files(package: str) -> dict[str, list[Path]]:
    """Return the modules of each room; what stands in the package's `__init__` is no room."""
    found: dict[str, list[Path]] = {}
    for path in sorted(source(package).rglob("*.py")):
        first = path.relative_to(source(package)).parts[0].removesuffix(".py")
        if first != "__init__":
            found.setdefault(first, []).append(path)
    return found


@cache
def rooms(package: str) -> Graph:
    """Return which rooms each room imports, under TYPE_CHECKING and in functions as well."""
    known = files(package)
    return {
        room: {it for path in paths for it in imported(path, package) if it in known} - {room}
        for room, paths in known.items()
    }


def imported(path: Path, package: str) -> Iterator[str]:
    """Yield the rooms that a module imports something of."""
    inside = path.relative_to(source(package).parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [it.name for it in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = inside[: len(inside) - node.level + 1] if node.level else ()
            origin = ".".join([*parts, *filter(None, [node.module])])
            names = [f"{origin}.{it.name}" for it in node.names]
        else:
            continue
        yield from (it.split(".")[1] for it in names if it.startswith(f"{package}."))


def distributions() -> Graph:
    """Return which distributions of this repository each of them requires, extras aside.

    Those that no other requires, and that require the same, are one node: their names with commas.
    """
    settings = {
        path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for path in sorted(PACKAGES.glob("*/pyproject.toml"))
    }
    graph = {
        name: {re.split(r"[^\w-]", it, maxsplit=1)[0] for it in its.get("dependencies", ())} & settings.keys()
        for name, its in settings.items()
    }
    required = set().union(*graph.values())
    alike: dict[frozenset[str], list[str]] = {}
    for name in graph.keys() - required:
        alike.setdefault(frozenset(graph[name]), []).append(name)
    merged = {", ".join(sorted(names)): set(targets) for targets, names in alike.items()}
    return {name: graph[name] for name in required} | merged


def floors(graph: Graph) -> dict[str, int]:
    """Return the floor of each node, counted from the top: right below the lowest that leads to it.

    Raises:
        ValueError: some lead to each other in a circle.
    """
    leading = {node: {it for it in graph if node in graph[it]} for node in graph}
    found: dict[str, int] = {}
    while len(found) < len(graph):
        ready = [it for it in graph if it not in found and leading[it] <= found.keys()]
        if not ready:
            msg = f"these import each other in a circle: {', '.join(sorted(graph.keys() - found.keys()))}"
            raise ValueError(msg)
        found |= {it: max((found[high] + 1 for high in leading[it]), default=0) for it in ready}
    return found


def direct(graph: Graph) -> Graph:
    """Return the graph without the arrows that follow from others: a way by way of a third is enough."""
    return {
        node: targets - {it for low in targets for it in below(low, graph)} for node, targets in graph.items()
    }


def below(node: str, graph: Graph) -> set[str]:
    """Return all that a node leads to."""
    return set().union(*({it} | below(it, graph) for it in graph[node]))


# ----------------------------------------------------------------------------------------- the sentences


def sentences(package: str) -> list[tuple[str, str]]:
    """Return what each room is for, the highest first."""
    depths = floors(rooms(package))
    order = sorted(depths, key=lambda room: (depths[room], room))
    return [
        (f"{room}/" if is_folder(package, room) else f"{room}.py", about(package, room)) for room in order
    ]


def untold(package: str) -> list[str]:
    """Return the rooms that do not say what they are for."""
    return [room for room in files(package) if not about(package, room)]


def about(package: str, room: str) -> str:
    """Return the first paragraph of a room's docstring, of a folder the second as well."""
    path = (
        source(package) / room / "__init__.py" if is_folder(package, room) else source(package) / f"{room}.py"
    )
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraphs = [" ".join(it.split()) for it in text.split("\n\n")]
    return " ".join(paragraphs[: 2 if is_folder(package, room) else 1])


def is_folder(package: str, room: str) -> bool:
    """Return True if a room is a folder."""
    return (source(package) / room).is_dir()


# ----------------------------------------------------------------------------------------- the pictures

_GAP, _SPACE, _LINE = 46, 16, 17
_COLOUR = "#7a8594"


@dataclass
class _Box:
    """A box of the picture, or the bend of an arrow that passes a floor."""

    name: str
    lines: Sequence[str] = ()
    width: float = 10
    height: float = 0
    x: float = 0
    top: float = 0
    up: list[_Box] = field(default_factory=list)
    down: list[_Box] = field(default_factory=list)


def picture(what: str) -> str:
    """Return a picture as SVG: `distributions`, or the rooms of an import package."""
    graph = distributions() if what == "distributions" else rooms(what)
    depths = floors(graph)
    rows = _rows(direct(graph), depths, {node: _label(what, node) for node in graph})
    _order(rows)
    width, height = _place(rows)
    boxes = [box for row in rows for box in row if box.lines]
    floor_names = [", ".join(sorted(it for it in depths if depths[it] == n)) for n in range(len(rows))]
    label = f"{what}, from the top floor to the ground floor: {'; '.join(floor_names)}"
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
                f'style="max-width:{width:.0f}px;width:100%" aria-label="{escape(label)}">'
            ),
            *(_arrow(box, low) for box in boxes for low in box.down),
            *map(_drawn, boxes),
            "</svg>",
        ]
    )


def _label(what: str, node: str) -> list[str]:
    """Return the lines in a box: the name of a room and its size, or names of distributions by threes."""
    if what == "distributions":
        names = node.split(", ")
        return [", ".join(names[first : first + 3]) for first in range(0, len(names), 3)]
    return [node, f"{len(files(what)[node])} modules"] if is_folder(what, node) else [node]


def _rows(graph: Graph, depths: Mapping[str, int], labels: Mapping[str, list[str]]) -> list[list[_Box]]:
    """Return the floors, the highest first; an arrow that passes a floor has a bend there."""
    rows: list[list[_Box]] = [[] for _ in range(max(depths.values()) + 1)]
    made = {}
    for name in sorted(graph):
        lines = labels[name]
        made[name] = _Box(name, lines, 24 + 7.6 * max(map(len, lines)), 10 + _LINE * max(len(lines), 2))
        rows[depths[name]].append(made[name])
    for name in sorted(graph):
        for target in sorted(graph[name]):
            above = made[name]
            for depth in range(depths[name] + 1, depths[target]):
                bend = _Box(f"{name} {target}")
                rows[depth].append(bend)
                _join(above, bend)
                above = bend
            _join(above, made[target])
    return rows


def _join(above: _Box, low: _Box) -> None:
    above.down.append(low)
    low.up.append(above)


def _order(rows: list[list[_Box]]) -> None:
    """Put boxes below and above what they are joined to, so that fewer arrows cross."""
    _number(rows)
    for turn in range(24):
        is_downward = turn % 2 == 0
        for row in rows if is_downward else rows[::-1]:
            middle = {box.name: _middle(box.up if is_downward else box.down, box.x) for box in row}
            row.sort(key=lambda box: (middle[box.name], box.name))
            _number([row])


def _number(rows: list[list[_Box]]) -> None:
    for row in rows:
        for number, box in enumerate(row):
            box.x = (number + 0.5) / len(row)


def _middle(others: Sequence[_Box], default: float) -> float:
    return sum(it.x for it in others) / len(others) if others else default


def _place(rows: list[list[_Box]]) -> tuple[float, float]:
    """Give each box its place; return the width and the height of the picture."""
    width = max(sum(box.width + _SPACE for box in row) for row in rows) + 2
    top = 1.0
    for row in rows:
        share = (width - sum(box.width + _SPACE for box in row)) / (len(row) + 1)
        height = max(box.height for box in row)
        x = share + _SPACE / 2
        for box in row:
            box.x, box.top, box.height = x + box.width / 2, top, height
            x += box.width + _SPACE + share
        top += height + _GAP
    return width, top - _GAP + 1


def _arrow(box: _Box, low: _Box) -> str:
    """Draw an arrow from a box to the next, by all its bends."""
    path = [f"M{box.x:.0f} {box.top + box.height:.0f}"]
    while True:
        start, end = box.top + box.height, low.top - (7 if low.lines else 0)
        half = (start + end) / 2
        path.append(f"C{box.x:.0f} {half:.0f} {low.x:.0f} {half:.0f} {low.x:.0f} {end:.0f}")
        if low.lines:
            break
        path.append(f"V{low.top + low.height:.0f}")
        box, (low,) = low, low.down
    head = f"M{low.x - 4:.0f} {low.top - 8:.0f} h8 l-4 8 z"
    return f'<path d="{" ".join(path)}" fill="none" stroke="{_COLOUR}"/><path d="{head}" fill="{_COLOUR}"/>'


def _drawn(box: _Box) -> str:
    left, middle = box.x - box.width / 2, box.top + box.height / 2
    frame = (
        f'<rect x="{left:.0f}" y="{box.top:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="5" '
        f'fill="#f4f6f9" stroke="{_COLOUR}"/>'
    )
    first = middle + 5 - _LINE * (len(box.lines) - 1) / 2
    texts = [
        f'<text x="{box.x:.0f}" y="{first + _LINE * number:.0f}" text-anchor="middle" '
        f'font-family="sans-serif" font-size="13" fill="#1d2733">{escape(text)}</text>'
        for number, text in enumerate(box.lines)
    ]
    return "".join([frame, *texts])


if __name__ == "__main__":
    sys.exit(main())
