"""Hypothesis strategies for tests: valid specs with any fields, and texts that are often misread."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from jpsi import StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.plugin import (
    Bind,
    Container,
    Dependency,
    DependencyKind,
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    ResourceSpec,
    ResourceSpecV1,
)
from jpsi.plugin.kit import SIGNALS

#: Texts that YAML, JSON, a shell or a batch system may misread.
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
#: Python's words for a mistake in a program; no user may get them for a mistake in a document.
PYTHON_WORDS = re.compile(
    r"keyword argument|positional argument|__\w+__|NoneType|has no attribute|\bobject is not\b|unhashable"
    r"|not subscriptable|not supported between|<class |\bnot iterable|must be str\b|unsupported operand"
    r"|<enum |<lambda>|\bint\(\)|invalid literal for|codec can't"
    r"|\bmust be (int|str|bool|float|dict|list|tuple),"
)
_COUNTS = st.integers(min_value=1, max_value=12)
_CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
_LONGEST_NAME = 300


def hostile_text() -> st.SearchStrategy[str]:
    """Generate any text without NUL, and texts that are often misread."""
    return st.sampled_from(HOSTILE) | st.text(_CHARACTERS, max_size=12)


def job_names() -> st.SearchStrategy[str]:
    """Generate names of jobs, including long names and names of several lines."""
    return hostile_text() | st.text(_CHARACTERS, min_size=1, max_size=_LONGEST_NAME)


def environment_names() -> st.SearchStrategy[str]:
    """Generate names of environment variables."""
    return st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def environments() -> st.SearchStrategy[dict[str, str | None]]:
    """Generate environments of jobs."""
    return st.dictionaries(environment_names(), st.none() | hostile_text(), max_size=3)


def paths() -> st.SearchStrategy[Path]:
    """Generate paths, also relative ones."""
    return hostile_text().map(Path)


def directories() -> st.SearchStrategy[Path]:
    """Generate working directories."""
    roots = st.sampled_from(["/", "~/", "//"])
    return st.builds(lambda root, text: Path(root + text), roots, hostile_text())


def durations() -> st.SearchStrategy[timedelta]:
    """Generate durations, with the one that means no limit."""
    return st.timedeltas(timedelta(0), timedelta(days=36_500))


def json_values() -> st.SearchStrategy[Any]:
    """Generate any value that JSON can represent."""
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | hostile_text() | st.just("a\0b"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile_text(), inner, max_size=3),
        max_leaves=6,
    )


def corrupted_documents(document: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401  plain values
    """Generate copies of a document with one part removed or changed, or a part added."""
    part_paths = [part_path for part_path in _part_paths(document) if part_path]
    names = st.sampled_from(["nothing", "kind", "name", "self", "path"]) | st.text(_CHARACTERS, min_size=1)
    return st.builds(
        _change_part,
        st.just(document),
        st.sampled_from(part_paths),
        st.sampled_from(["remove", "change", "add"]),
        names.filter(_has_no_python_word),
        json_values().filter(_has_no_python_word),
    )


def _has_no_python_word(value: Any) -> bool:  # noqa: ANN401  plain values
    """Return True if a message that quotes a value has no word of Python for that reason."""
    return not PYTHON_WORDS.search(str(value))


def _part_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401  plain values
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _part_paths(inner, (*path, key))


def _change_part(document: Any, part_path: tuple[Any, ...], change: str, name: str, value: Any) -> Any:  # noqa: ANN401  plain values
    found = copy.deepcopy(document)
    *parents, last = part_path
    container = found
    for step in parents:
        container = container[step]
    if change == "remove":
        del container[last]
    elif change == "change" or not isinstance(container, dict):
        container[last] = value
    else:
        container[name] = value
    return found


def custom_names() -> st.SearchStrategy[str]:
    """Generate names of custom attributes, with those that have a place of their own in a job document."""
    prefixes = st.sampled_from(["", "job.", "count.", "slurm."])
    reserved = st.sampled_from(["job", "count", "job.name", "count.total", "count.per_slot"])
    return st.builds(str.__add__, prefixes, hostile_text()) | reserved


@st.composite
def resource_specs(draw: st.DrawFn) -> ResourceSpecV1:
    """Generate valid resources: every way to give the counts, uneven last nodes included."""
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
    return ResourceSpecV1.uneven(
        **counts,
        cpu_cores_per_process=draw(st.none() | _COUNTS),
        gpu_cores_per_process=draw(st.none() | st.integers(0, 4)),
        exclusive_node_use=draw(st.booleans()),
        **{draw(st.sampled_from(["memory", "memory_per_cpu"])): draw(st.none() | st.integers(2**20, 2**50))},
    )


def heterogeneous_resources() -> st.SearchStrategy[HeterogeneousResources]:
    """Generate valid resources of several kinds."""
    return st.builds(HeterogeneousResources, st.lists(resource_specs(), min_size=2, max_size=3))


def native_ids() -> st.SearchStrategy[str]:
    """Generate native ids; those of most batch systems are numbers."""
    return st.integers(1, 10**7).map(str) | st.from_regex(
        r"[0-9]{1,5}(\[[0-9]\])?(\.[a-z]+)?", fullmatch=True
    )


def dependencies() -> st.SearchStrategy[list[Any]]:
    """Generate lists of dependencies."""
    return st.lists(
        native_ids() | st.builds(Dependency, native_ids(), st.sampled_from(DependencyKind)), max_size=3
    )


def job_attributes() -> st.SearchStrategy[JobAttributes]:
    """Generate valid attributes."""
    return st.builds(
        JobAttributes,
        duration=st.none() | durations(),
        **{name: st.none() | hostile_text() for name in JobAttributes.text_names() if name != "mail"},
        mail=st.none() | st.sampled_from(["ann@example.org", "begin,fail:ann", "end:a.b+c@example.org"]),
        warn=st.none() | st.tuples(st.sampled_from(SIGNALS), st.integers(1, 86_400)),
        retry=st.none() | st.dictionaries(st.sampled_from(["timeout", "lost", "75", "9"]), st.integers(0, 9)),
        after=st.none() | dependencies(),
        custom_attributes=st.none()
        | st.dictionaries(custom_names(), hostile_text() | json_values(), max_size=4),
        user=st.none() | st.dictionaries(hostile_text(), json_values(), max_size=3),
    )


def containers() -> st.SearchStrategy[Container]:
    """Generate valid containers."""
    places = st.builds(str.__add__, st.sampled_from(["/", "${HOME}"]), hostile_text())
    return st.builds(
        Container,
        hostile_text().filter(lambda it: it and not it.startswith(("-", "~"))),
        runtime=hostile_text(),
        binds=st.none() | st.lists(st.builds(Bind, places, places, st.booleans()), max_size=2),
        directory=st.none() | places,
        gpu=st.booleans(),
        environment=st.none() | environments(),
    )


def specs(*, heterogeneous: bool = False) -> st.SearchStrategy[JobSpec]:
    """Generate valid specs; on request also some with resources of several kinds."""
    resources: st.SearchStrategy[ResourceSpec] = resource_specs()
    if heterogeneous:
        resources |= heterogeneous_resources()
    texts, flags = hostile_text(), st.integers(0, 15).map(StageOutFlags)
    modes = st.sampled_from(StagingMode)
    return st.builds(
        JobSpec,
        texts.filter(bool),
        st.none() | st.lists(texts, max_size=4),
        name=st.none() | texts,
        directory=st.none() | directories(),
        create_directory=st.booleans(),
        inherit_environment=st.booleans(),
        environment=st.none() | environments(),
        stdin_path=st.none() | paths(),
        stdout_path=st.none() | paths(),
        stderr_path=st.none() | paths(),
        pre_launch=st.none() | paths(),
        post_launch=st.none() | paths(),
        environment_setup=st.none()
        | st.lists(st.builds("module:m{}".format, st.integers(0, 99)), max_size=2),
        container=st.none() | containers(),
        launcher=st.none() | texts,
        resources=st.none() | resources,
        attributes=st.none() | job_attributes(),
        stage_in=st.none() | st.lists(st.builds(StageIn, texts, paths(), modes), max_size=2),
        stage_out=st.none() | st.lists(st.builds(StageOut, paths(), texts, flags, modes), max_size=2),
        cleanup=st.none() | st.lists(paths(), max_size=2),
        cleanup_flags=flags,
    )
