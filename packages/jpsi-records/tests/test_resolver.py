"""The contents of mounts, which count independently of their form."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_dispatcher import spec
from jpsi_records.errors import InvalidRequestError
from jpsi_records.model.canonical_json import canonical
from jpsi_records.records.records import Records

CONTENTS = st.text(st.sampled_from("ab1 é"), max_size=3)


@pytest.fixture(scope="module")
def records() -> Iterator[Records]:
    """Return records that all examples share; their contents do not interfere."""
    with tempfile.TemporaryDirectory() as directory, Records(directory) as records:
        yield records


def fingerprints(records: Records, mount: dict[str, Any], at: str = "stdin") -> tuple[str, ...]:
    return records.preview(spec("true", mounts={at: mount})).resolution.fingerprints


def put(records: Records, files: dict[str, str], name: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as directory:
        for at, content in files.items():
            path = Path(directory, at)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return records.put(directory, name).digest


@given(content=CONTENTS)
def test_equal_content_has_one_meaning_in_every_form(records: Records, content: str) -> None:
    text = canonical(content)
    digest = put(records, {"d/f": text}, "named")

    found = {
        fingerprints(records, {"kind": "text", "content": text}),
        fingerprints(records, {"kind": "json", "content": content}),
        fingerprints(records, {"kind": "collection_file", "digest": digest, "path": "/d/f"}),
        fingerprints(records, {"kind": "collection_file", "name": "named", "path": "/d/f"}),
        fingerprints(records, {"kind": "blob", "digest": records.blobs.add_bytes(text.encode())}),
    }

    assert len(found) == 1


@given(one=CONTENTS, other=CONTENTS)
def test_contents_have_one_meaning_exactly_if_they_are_equal(records: Records, one: str, other: str) -> None:
    def as_text(content: str) -> tuple[str, ...]:
        return fingerprints(records, {"kind": "text", "content": content})

    def as_directory(content: str) -> tuple[str, ...]:
        mount = {"kind": "collection", "digest": put(records, {"f": content}), "writable": False}
        return fingerprints(records, mount, "/in")

    assert (as_text(one) == as_text(other)) is (one == other)
    assert (as_directory(one) == as_directory(other)) is (one == other)


@given(files=st.dictionaries(st.sampled_from(["a", "b", "c/d"]), CONTENTS, min_size=1))
def test_a_directory_of_a_collection_is_the_collection_of_its_files(
    records: Records, files: dict[str, str]
) -> None:
    inner = put(records, files)
    outer = put(records, {**{f"x/y/{at}": content for at, content in files.items()}, "z": "1"})

    found = fingerprints(records, {"kind": "collection", "digest": outer, "path": "/x/y"}, "/in")

    assert found == fingerprints(records, {"kind": "collection", "digest": inner}, "/in")


@pytest.mark.clause("records-equal")
def test_an_unspecified_writability_matches_both(records: Records) -> None:
    mount = {"kind": "collection", "digest": put(records, {"a": "1"})}
    either = fingerprints(records, mount, "/in")

    assert either == tuple(
        it for choice in (False, True) for it in fingerprints(records, {**mount, "writable": choice}, "/in")
    )
    assert len(set(either)) == 2


def test_a_name_means_its_current_collection(records: Records) -> None:
    mount = {"kind": "collection", "name": "changing"}
    put(records, {"a": "1"}, "changing")
    before = fingerprints(records, mount, "/in")
    put(records, {"a": "2"}, "changing")

    assert fingerprints(records, mount, "/in") != before
    put(records, {"a": "1"}, "changing")
    assert fingerprints(records, mount, "/in") == before


def test_an_executable_file_means_something_else(records: Records, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1")
    plain = records.put(tmp_path).digest
    (tmp_path / "f").chmod(0o755)

    assert records.put(tmp_path).digest != plain


def test_the_capacity_of_a_temporary_directory_has_no_meaning(records: Records) -> None:
    small, large = ({"kind": "tmp", "capacity": it} for it in (1, 10**9))

    assert fingerprints(records, small, "/tmp") == fingerprints(records, large, "/tmp")


@pytest.mark.clause("records-equal")
def test_the_target_of_a_mount_has_a_meaning(records: Records) -> None:
    mount = {"kind": "tmp"}

    assert fingerprints(records, mount, "/tmp") != fingerprints(records, mount, "/scratch")


def test_all_missing_contents_are_reported_together(records: Records) -> None:
    nowhere = {"kind": "blob", "digest": "sha256:" + "0" * 64}
    mounts = {"/a": {"kind": "collection", "name": "no-such"}, "/b": nowhere}

    with pytest.raises(InvalidRequestError) as e:
        records.preview(spec("true", mounts=mounts))

    assert [it[:10] for it in e.value.problems] == ["mounts: /a", "mounts: /b"]
    assert e.value.problems[0].endswith("; jpsi request put FILE --name NAME stores one")
