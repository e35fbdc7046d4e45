"""Hypothesis strategies: valid specs with every field filled or unset, and text that is often misread."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode

#: Texts that YAML, JSON, a shell or a batch system may take for something else.
# fmt: off
HOSTILE = (
    "", " ", "  a", "a  ", "\t", "\n", "\n\n", "a\n", "a\n\n", "\na", " a\nb", "a \nb",
    "a\n b\n  c", "a\r\nb", "\r", "yes", "No", "on", "y", "n", "true", "NULL", "null", "~", "1",
    "-1", "+1", "1_000", "010", "0o17", "0x1F", "1.5", "1e3", "-1e3", "1.0e+3", ".5", "-.5",
    ".inf", "-.INF", ".nan", "NaN", "10:30", "2026-01-01", "12:30:45", "-", "- a", "? a", ":",
    "a: b", "a :b", "#", "a #b", "# a", "[", "]", "[]", "{}", "{a: b}", ",", "&a", "*a", "!",
    "!!str", "!!python/object:a", "%YAML 1.1", "@", "`", "|", ">", "---", "...", "<<", "=", "'",
    '"', "''", "\\", "\\n", "a\\", "$HOME", "${HOME}", "$${HOME}", "$(a)", "a;b", "*", "\x01",
    "\x1b[0m", "\x7f", "\x85", "a\x85b", "\xa0", "\u2028", "a\u2028b", "\u2029", "\ufeff",
    "\ufffe", "\uffff", "é", "日本", "😀", "\U0010ffff", "\udc80", "a\udcffb", "\\ud83d\\ude00",
    "#SBATCH --time=1", "#PBS -l", "a" * 200, "a b " * 60, "x" * 2000,
)
# fmt: on
_CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
_COUNTS = st.integers(min_value=1, max_value=12)

#: Everything that a program can be given: any text without NUL.
texts = st.sampled_from(HOSTILE) | st.text(_CHARACTERS, max_size=12)
#: Paths, relative ones among them.
paths = texts.map(Path)
#: Working directories.
directories = st.builds(lambda root, text: Path(root + text), st.sampled_from(["/", "~/", "//"]), texts)
#: Names of environment variables.
environment_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
#: Anything that JSON can express.
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.just("a\0b"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
durations = st.timedeltas(timedelta(0), timedelta(days=36_500))
#: Names of custom attributes, those among them that a job document has a place of its own for.
custom_names = st.builds(
    str.__add__, st.sampled_from(["", "job.", "count.", "slurm."]), texts
) | st.sampled_from(["job", "count", "job.name", "count.total", "count.per_slot"])
flags = st.integers(0, 15).map(StageOutFlags)
modes = st.sampled_from(StagingMode)


@st.composite
def resources(draw: st.DrawFn) -> ResourceSpecV1:
    """Valid resources: every way to give the counts, uneven last nodes included."""
    nodes, per_node, processes = draw(_COUNTS), draw(_COUNTS), draw(st.integers(1, 100))
    counts: dict[str, int] = draw(
        st.sampled_from(
            [
                {},
                {"node_count": nodes},
                {"processes_per_node": per_node},
                {"process_count": processes},
                {"node_count": nodes, "processes_per_node": per_node},
                {"process_count": processes, "processes_per_node": per_node},
                {"node_count": nodes, "process_count": nodes + processes},
                {
                    "node_count": -(-processes // per_node),
                    "process_count": processes,
                    "processes_per_node": per_node,
                },
            ]
        )
    )
    return ResourceSpecV1(
        **counts,
        cpu_cores_per_process=draw(st.none() | _COUNTS),
        gpu_cores_per_process=draw(st.none() | st.integers(0, 4)),
        exclusive_node_use=draw(st.booleans()),
        memory=draw(st.none() | st.integers(1, 2**50)),
    )


#: Valid attributes.
attributes = st.builds(
    JobAttributes,
    duration=st.none() | durations,
    queue_name=st.none() | texts,
    project_name=st.none() | texts,
    reservation_id=st.none() | texts,
    custom_attributes=st.none() | st.dictionaries(custom_names, texts | json_values, max_size=4),
    user=st.none() | st.dictionaries(texts, json_values, max_size=3),
)
#: Valid specs.
job_specs = st.builds(
    JobSpec,
    texts.filter(bool),
    st.none() | st.lists(texts, max_size=4),
    name=st.none() | texts,
    directory=st.none() | directories,
    create_directory=st.booleans(),
    inherit_environment=st.booleans(),
    environment=st.none() | st.dictionaries(environment_names, st.none() | texts, max_size=3),
    stdin_path=st.none() | paths,
    stdout_path=st.none() | paths,
    stderr_path=st.none() | paths,
    pre_launch=st.none() | paths,
    post_launch=st.none() | paths,
    launcher=st.none() | texts,
    resources=st.none() | resources(),
    attributes=st.none() | attributes,
    stage_in=st.none() | st.lists(st.builds(StageIn, texts, paths, modes), max_size=2),
    stage_out=st.none() | st.lists(st.builds(StageOut, paths, texts, modes, flags), max_size=2),
    cleanup=st.none() | st.lists(paths, max_size=2),
    cleanup_flags=flags,
)
