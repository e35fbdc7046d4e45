"""Strategies for request specs of every form."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = st.text(st.sampled_from("abé- $"), min_size=1, max_size=4)
DIGESTS = st.sampled_from(["sha256:" + letter * 64 for letter in "0a"])
NAMES = st.sampled_from(["A", "B", "LC_ALL"])

COLLECTIONS = st.fixed_dictionaries(
    {"kind": st.just("collection"), "digest": DIGESTS},
    optional={"path": st.sampled_from(["/", "/a", "/a/"]), "writable": st.booleans()},
)
FILES = st.fixed_dictionaries({"kind": st.just("collection_file"), "digest": DIGESTS, "path": st.just("/a")})
TREES = st.fixed_dictionaries({"kind": st.just("git_tree"), "url": st.just("/r"), "commit": NAMES})
TMPS = st.fixed_dictionaries({"kind": st.just("tmp")}, optional={"capacity": st.integers(1, 3)})
TEXTS = st.fixed_dictionaries({"kind": st.just("text"), "content": WORDS})
JSONS = st.fixed_dictionaries({"kind": st.just("json"), "content": st.integers(0, 3) | st.floats(0, 3)})
MOUNTS = COLLECTIONS | FILES | TREES | TMPS | TEXTS | JSONS


def _with_output(document: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    targets = [it for it in document.get("mounts", {}) if it.startswith("/")]
    if not targets:
        return st.just(document)
    path = st.sampled_from([*targets, *(f"{it.rstrip('/')}/x/" for it in targets)])
    globs = st.lists(st.sampled_from(["*", "*.txt", "**/a"]), max_size=3)
    outputs = st.fixed_dictionaries({"output_path": path}, optional={"output_globs": globs})
    return (st.just({}) | outputs).map(lambda it: {**document, **it})


#: Documents of computations, with and without optional members.
COMPUTATIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"command": st.lists(WORDS, min_size=1, max_size=3)},
    optional={
        "environment": st.dictionaries(NAMES, st.none() | WORDS, max_size=2),
        "cwd": st.sampled_from([".", "/", "in", "/in", "in/"]),
        "mounts": st.dictionaries(st.sampled_from(["/a", "/b", "/c/", "/c"]), MOUNTS, max_size=2).filter(
            lambda it: len({target.rstrip("/") for target in it}) == len(it)
        )
        | st.fixed_dictionaries({"stdin": TEXTS | JSONS | FILES}),
        "processes": st.integers(1, 2),
        "threads": st.integers(1, 2),
        "topology": st.sampled_from(["exact", "any"]),
        "purity": st.sampled_from(["strict", "declared", "off"]),
    },
).flatmap(_with_output)

#: Members that do not change the meaning of a document.
DEFAULTS: dict[str, Any] = {
    "environment": {},
    "cwd": ".",
    "mounts": {},
    "output_path": None,
    "output_globs": [],
    "processes": 1,
    "threads": 1,
    "topology": "exact",
    "purity": "declared",
    "reuse": "prefer",
    "accepts_failed": False,
    "success_exit_codes": [0],
    "max_age": None,
    "filters": [],
    "after": [],
    "attempts": 3,
    "runtime_constraints": {},
    "placement": {},
}

#: Members that are no part of the computation.
PLACEMENTS = st.fixed_dictionaries(
    {},
    optional={
        "queue_name": st.just("debug"),
        "duration": st.integers(0, 9),
        "memory": st.integers(1 << 20, 9 << 20),
        "executor": st.just("slurm"),
        "project_name": st.just("p"),
    },
)
