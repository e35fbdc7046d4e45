"""Measures the first `get_instance` with 200 installed distributions, beside a plain entry-point lookup.

    ./dev benchmarks discovery            medians of 15 fresh interpreters each
    ./dev benchmarks discovery --rounds 5

The distributions are `dist-info` directories, a tenth of them with an executor. The reference is an
interpreter that starts and reads its entry points by `importlib.metadata` from the same directory. "The call"
is `jpsi.JobExecutor.get_instance(...)` itself, the first after `import jpsi`, with all that it imports. Times
are processor times, which depend less on the machine's other load.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 200
OFFERING = 10

START = "pass"
LOOKUP = "from importlib.metadata import entry_points; entry_points()"
IMPORT = "import jpsi; jpsi.JobExecutor"
FIRST = """import time, jpsi
begin = time.process_time()
jpsi.JobExecutor.get_instance({!r})
print(time.process_time() - begin)
"""
LOCAL, PLUGIN = FIRST.format("local"), FIRST.format("toy10")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place, "plugins")
        for number in range(COUNT):
            distribution(directory, number)
        on_path = {"PYTHONPATH": str(directory)}
        plugin_path = {"JPSI_PLUGIN_PATH": str(directory)}
        cases = {
            "interpreter alone": (START, on_path),
            f"interpreter + entry_points() over {COUNT}": (LOOKUP, on_path),
            "import jpsi with its engine": (IMPORT, on_path),
            f"get_instance('local'), {COUNT} on sys.path": (LOCAL, on_path),
            f"get_instance('local'), {COUNT} on the plugin path": (LOCAL, plugin_path),
            f"get_instance of one of {COUNT} on sys.path": (PLUGIN, on_path),
            f"get_instance of one of {COUNT} on the plugin path": (PLUGIN, plugin_path),
        }
        run_measurement: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for program, variables in cases.values():
            run(program, variables, place)  # compiles
        for _ in range(rounds):
            for name, (program, variables) in cases.items():
                run_measurement[name].append(run(program, variables, place))
    reference = statistics.median(
        whole for whole, _ in run_measurement[f"interpreter + entry_points() over {COUNT}"]
    )
    print(f"{'':55} {'process':>10} {'ratio':>6} {'the call':>10}")
    for name, seconds in run_measurement.items():
        whole, call = (statistics.median(column) for column in zip(*seconds, strict=True))
        call_time = f"{1000 * call:7.1f} ms" if call else ""
        print(f"{name:55} {1000 * whole:7.1f} ms {whole / reference:6.2f} {call_time:>10}")


def distribution(directory: Path, number: int) -> None:
    info = directory / f"toy_{number}-1.{number}.dist-info"
    info.mkdir(parents=True)
    requires = "".join(f"Requires-Dist: other-{index}>=1\n" for index in range(10))
    text = f"Metadata-Version: 2.1\nName: toy-{number}\nVersion: 1.{number}\n{requires}"
    groups = "[console_scripts]\ntoy = toy:main\n"
    if number % OFFERING == 0:
        text += "Requires-Dist: jpsi-core>=0.1\n"
        groups += f"[jpsi.executors]\ntoy{number} = toy_{number}\n"
        (directory / f"toy_{number}.py").write_text(MODULE)
    (info / "METADATA").write_text(text + "\n" + "A description.\n" * 100)
    (info / "entry_points.txt").write_text(groups)


MODULE = """from jpsi.plugin import hookimpl
@hookimpl
def make_engine(setup):
    return setup.process_engine(setup)
"""


def run(program: str, variables: dict[str, str], place: str) -> tuple[float, float]:
    """Return the processor time of a process, and that of the call, which the process prints, in seconds."""
    environment = {**os.environ, **variables, "XDG_CONFIG_HOME": place, "XDG_STATE_HOME": place}
    # as after an installation: modules are compiled once
    environment["PYTHONPYCACHEPREFIX"] = f"{place}/compiled"
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = processor_seconds()
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, stdout=subprocess.PIPE
    )
    return processor_seconds() - begin, float(done.stdout or 0)


def processor_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
