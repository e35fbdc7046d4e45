"""Draws pilots and the jobs in them over time, from a real run, for the guide.

    python docs/pilots_picture.py

It takes jpsi-pilot[dask]. Pilots are processes of this machine; the picture is written beside the guide.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs

from jpsi import Job, JobExecutor, JobSpec
from jpsi_pilot.config import PilotConfig

PICTURE = Path(__file__).parent / "guide" / "pilots.svg"
CORES, PILOTS = 3, 3
_WIDTH, _LEFT, _LANE, _GAP, _FOOT = 820, 70, 14, 14, 34
_COLOURS = ("#4c78a8", "#72b7b2")


@attrs.frozen(slots=True)
class Bar:
    """A pilot or a job, in seconds since the beginning."""

    start: float
    end: float


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        PICTURE.write_text(drawn(*bars_of(run(Path(folder)))), encoding="utf-8")


def run(folder: Path) -> list[dict[str, Any]]:
    """Run two waves of jobs, and return what the agent has written down."""
    config = PilotConfig(
        work_directory=folder,
        cores_per_node=CORES,
        max_pilots=PILOTS,
        idle_time=timedelta(seconds=4),
        kill_delay=timedelta(seconds=1),
    )
    lengths = random.Random(7)  # noqa: S311  the same each time
    with JobExecutor.get_instance("pilot", config=config) as executor:
        for count in (40, 10):
            jobs = [Job(JobSpec("sleep", [f"{lengths.uniform(0.3, 2.5):.1f}"])) for _ in range(count)]
            executor.submit_many(jobs)
            for job in jobs:
                job.wait()
            time.sleep(3)
        time.sleep(6)
    lines = (folder / "pilots" / "journal").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def bars_of(events: Iterable[dict[str, Any]]) -> tuple[dict[str, Bar], dict[str, list[Bar]]]:
    """Return the bars of the pilots by name, and those of the jobs of each."""
    pilots: dict[str, Bar] = {}
    jobs: dict[str, list[Bar]] = {}
    begun: dict[str, tuple[str, float]] = {}
    for event in events:
        match event["what"]:
            case "pilot":
                pilots[event["name"]] = Bar(event["time"], event["time"])
            case "pilot_gone":
                pilots[event["name"]] = attrs.evolve(pilots[event["name"]], end=event["time"])
            case "started":
                for native_id in event["ids"]:
                    begun[native_id] = (event["places"][0].partition("/")[0], event["time"])
            case "ended":
                pilot, start = begun[event["id"]]
                jobs.setdefault(pilot, []).append(Bar(start, event["time"]))
    return pilots, jobs


def lanes(bars: Iterable[Bar]) -> list[list[Bar]]:
    """The bars in rows, so that none overlaps another.

    >>> [len(lane) for lane in lanes([Bar(0, 2), Bar(1, 3), Bar(2, 4)])]
    [2, 1]
    """
    found: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda it: it.start):
        free = next((lane for lane in found if lane[-1].end <= bar.start), None)
        if free is None:
            found.append([bar])
        else:
            free.append(bar)
    return found


def drawn(pilots: dict[str, Bar], jobs: dict[str, list[Bar]]) -> str:
    """The picture."""
    first, last = min(it.start for it in pilots.values()), max(it.end for it in pilots.values())
    scale = (_WIDTH - _LEFT - 10) / (last - first)
    height = len(pilots) * (CORES * _LANE + _GAP) + _FOOT

    def rectangle(bar: Bar, top: float, tall: float, style: str) -> str:
        left, width = _LEFT + (bar.start - first) * scale, (bar.end - bar.start) * scale
        return f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{tall:.1f}" {style}/>'

    body: list[str] = []
    for row, (name, pilot) in enumerate(pilots.items()):
        top = row * (CORES * _LANE + _GAP) + 6
        body.append(f'<text x="4" y="{top + CORES * _LANE / 2 + 4}">pilot {name}</text>')
        body.append(rectangle(pilot, top, CORES * _LANE, 'fill="#eeeeee" stroke="#999999"'))
        for number, lane in enumerate(lanes(jobs.get(name, []))):
            body += [
                rectangle(bar, top + number * _LANE + 1, _LANE - 2, f'fill="{_COLOURS[count % 2]}"')
                for count, bar in enumerate(lane)
            ]
    body += _axis(range(0, int(last - first) + 1, 5), scale, height)
    return _SVG.format(width=_WIDTH, height=height, body="\n".join(body))


def _axis(seconds: Sequence[int], scale: float, height: int) -> list[str]:
    return [
        f'<text x="{_LEFT + it * scale:.1f}" y="{height - 10}" text-anchor="middle">{it} s</text>'
        for it in seconds
    ]


_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
 font-family="sans-serif" font-size="12">
<title>Pilots, and the jobs in them, over time</title>
<rect width="{width}" height="{height}" fill="#ffffff"/>
{body}
</svg>
"""

if __name__ == "__main__":
    main()
