"""Truncated, repeated or garbled output: refused, or read with the Observations of the whole output."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import CommandResult, JobState, Observation, SubmitException
from jpsi_pbs.hooks import Hooks
from jpsi_pbs.job_names import parse_tag
from jpsi_testing import Recording, command_result
from pbs_support import (
    PBS,
    SERVER,
    TORQUE,
    in_frame,
    in_json,
    in_xml,
    of_all,
    recordings,
    torque_recordings,
)

# Characters that replace others in garbled output, among them those that structure it. No letter and no
# digit, as these could turn one valid listing into another.
_NOISE = '~\x00\ufffd\n\t "{},<>/&'
_TAG = "jpsi-1b4e28ba-2fa1-11d2-1"


def _tagged(text: str) -> str:
    """Return recorded output in which each job has a tag."""
    text = re.sub(r'"PBS_O_SYSTEM":(\t?)"Linux"', rf'"JPSI_TAG":\1"{_TAG}"', text)
    return text.replace(",PBS_O_HOST=", f",JPSI_TAG={_TAG},PBS_O_HOST=")


def _listing_step(steps: Sequence[Recording], *options: str, shows: int = 1) -> Recording:
    """Return the last step that lists jobs and was called with these options."""
    found = [it for it in steps if {*options} <= {*it.argv}]
    return [it for it in found if it.result.stdout.count("job_state") >= shows][-1]


def _recorded() -> Iterator[tuple[str, Hooks, CommandResult, list[str] | None]]:
    """Yield output of every kind, with the queried ids."""
    pbs = ["status_completed_ok", "status_cancelled_running", "status_held", "status_dependency", "express"]
    torque = ["status_completed_ok", "status_cancelled_queued", "status_cancelled_running", "array"]
    steps = [(PBS, name, _listing_step(recordings(name), "json")) for name in pbs]
    steps.append(
        (PBS, "array", _listing_step(recordings("array"), "json", "-t", "-x", "197[].node01", shows=4))
    )
    steps.append((PBS, "release", _listing_step(recordings("json_of_release_23.06.06_client")[:8], "json")))
    steps += [(TORQUE, name, _listing_step(torque_recordings(name), "-f", "-x")) for name in torque]
    several = next(it for it in torque_recordings("unknown_job") if "-x" in it.argv and len(it.argv) > 5)
    for hooks, name, step in [*steps, (TORQUE, "unknown_job", several)]:
        native_ids = [it for it in step.argv[1:] if it[:1].isdecimal()]
        if name == "array":
            native_ids = hooks.element_ids(native_ids[0], [1, 2, 3])
        yield f"{hooks.name} {name}", hooks, step.result, native_ids
    jobs = _listing_step(recordings("express"), "json", shows=2).result.stdout
    yield "pbs all jobs", PBS, command_result(of_all(jobs, "pbsuser")), None
    jobs = _listing_step(torque_recordings("array"), "-f", "-x", shows=3).result.stdout
    yield "torque all jobs", TORQUE, command_result(of_all(jobs + SERVER)), None


_OUTPUTS = [
    pytest.param(hooks, attrs.evolve(result, stdout=_tagged(result.stdout)), native_ids, id=name)
    for name, hooks, result, native_ids in _recorded()
]
_EACH = pytest.mark.parametrize(("hooks", "result", "native_ids"), _OUTPUTS)


def _read(
    hooks: Hooks, result: CommandResult, stdout: str, native_ids: list[str] | None
) -> Mapping[str, Observation] | None:
    """Return the Observations in such output; None if it is refused."""
    with contextlib.suppress(SubmitException):
        return hooks.parse_status(attrs.evolve(result, stdout=stdout), native_ids)
    return None


def _is_consistent(found: Mapping[str, Observation] | None, whole: Mapping[str, Observation]) -> bool:
    """Return True if the Observations say nothing but what the whole output says, and no job is missing."""
    return found is None or (
        found.keys() == whole.keys()
        and all(
            seen.state in {None, whole[it].state}
            and seen.tag in {None, whole[it].tag}
            and seen.exists is whole[it].exists
            for it, seen in found.items()
        )
    )


@_EACH
def test_whole_output_is_read(hooks: Hooks, result: CommandResult, native_ids: list[str] | None) -> None:
    whole = hooks.parse_status(result, native_ids)

    existing = {it: seen for it, seen in whole.items() if seen.exists}
    assert existing
    assert {(seen.tag, seen.submitted is None) for seen in existing.values()} == {(_TAG, False)}
    assert None not in {seen.state for seen in existing.values()}


@_EACH
def test_truncated_listings_are_refused(
    hooks: Hooks, result: CommandResult, native_ids: list[str] | None
) -> None:
    whole, text = hooks.parse_status(result, native_ids), result.stdout

    for end in range(len(text)):
        found = _read(hooks, result, text[:end], native_ids)
        assert found in (None, whole), f"cut to {text[:end][-200:]!r}"
        assert found is None or end > len(text.rstrip()) - 1, "the end itself was missing"


@_EACH
def test_listings_without_their_beginning_are_refused(
    hooks: Hooks, result: CommandResult, native_ids: list[str] | None
) -> None:
    whole, text = hooks.parse_status(result, native_ids), result.stdout

    for begin in range(0, len(text), 3):
        found = _read(hooks, result, text[begin:], native_ids)
        assert found in (None, whole), f"cut to {text[begin:][:200]!r}"


@_EACH
def test_repeated_listings_report_the_same(
    hooks: Hooks, result: CommandResult, native_ids: list[str] | None
) -> None:
    whole, text = hooks.parse_status(result, native_ids), result.stdout

    assert _read(hooks, result, text * 2, native_ids) == whole
    for at in range(0, len(text), 13):
        for again in (text[:at] + text, text + text[at:], text[:at] + text[max(0, at - 500) :]):
            found = _read(hooks, result, again, native_ids)
            assert _is_consistent(found, whole), f"again after {text[:at][-200:]!r}"


@_EACH
def test_noise_reports_nothing_wrong(
    hooks: Hooks, result: CommandResult, native_ids: list[str] | None
) -> None:
    whole, text = hooks.parse_status(result, native_ids), result.stdout

    step = 1 + len(text) // 4000
    for at in range(0, len(text), step):
        noise = _NOISE[at // step % len(_NOISE)]
        garbled = f"{text[:at]}{noise}{text[at + 1 :]}"
        found = _read(hooks, result, garbled, native_ids)
        assert _is_consistent(found, whole), f"{noise!r} after {text[:at][-200:]!r}: {found}"


@_EACH
@given(data=st.data())
def test_any_noise_reports_nothing_wrong(
    hooks: Hooks, result: CommandResult, native_ids: list[str] | None, data: st.DataObject
) -> None:
    whole, text = hooks.parse_status(result, native_ids), result.stdout
    at = data.draw(st.integers(0, len(text)))
    noise = data.draw(st.text(_NOISE, min_size=1, max_size=8))
    gone = data.draw(st.integers(0, 3))

    found = _read(hooks, result, f"{text[:at]}{noise}{text[at + gone :]}", native_ids)

    assert _is_consistent(found, whole)


@_EACH
@given(text=st.text(max_size=200))
def test_invalid_output_is_refused(
    hooks: Hooks, result: CommandResult, native_ids: list[str] | None, text: str
) -> None:
    for stdout in (text, of_all(text), of_all(f"{text}\n")):
        assert _read(hooks, attrs.evolve(result, returncode=0, stderr=""), stdout, native_ids) is None


@_EACH
def test_a_missing_line_reports_no_other_end(
    hooks: Hooks, result: CommandResult, native_ids: list[str] | None
) -> None:
    whole, lines = hooks.parse_status(result, native_ids), result.stdout.splitlines(keepends=True)

    for at, line in enumerate(lines):
        found = _read(hooks, result, "".join(lines[:at] + lines[at + 1 :]), native_ids) or {}
        states = {it: (seen.state, whole[it].state) for it, seen in found.items()}
        assert all(state in {None, reported} for state, reported in states.values()), f"without {line!r}"


def test_a_truncated_error_denies_no_other_job() -> None:
    """`Unknown Job Id 77.node01` begins like an error about 7."""
    stderr = "qstat: Unknown Job Id 77.node01\n"
    whole = command_result(in_json("7.node01", job_state="R"), stderr, 153)

    assert not PBS.parse_status(whole, ["7.node01", "77.node01"])["77.node01"].exists
    for end in range(len(stderr)):
        cut = command_result(in_frame({}), stderr[:end], 153)
        with pytest.raises(SubmitException):
            PBS.parse_status(cut, ["7.node01", "77.node01"])


def test_each_named_job_is_reported() -> None:
    """Torque prints a listing or an error for each job, and so does OpenPBS unless one query has them all."""
    listed, stderr = in_xml("7.node01", job_state="R"), "qstat: Unknown Job Id Error 8.node01\n"

    native_ids = ["7.node01", "8.node01"]
    assert TORQUE.parse_status(command_result(listed, stderr, 153), native_ids).keys() == {*native_ids}
    with pytest.raises(SubmitException, match="no answer"):
        TORQUE.parse_status(command_result(listed), native_ids)
    one = command_result(in_json("7.node01", job_state="R"))
    assert PBS.parse_status(one, native_ids).keys() == {"7.node01"}
    with pytest.raises(SubmitException, match="no answer"):
        PBS.parse_status(one, ["7.node01", "8.other"])


def test_a_banner_before_all_jobs() -> None:
    """Its first line is not the name of the user."""
    listing = in_frame({"7.node01": {"job_state": "R", "Job_Owner": "tester@node01"}})

    for output in (
        f"Welcome\n{of_all(listing)}",
        of_all(f"{{\nWelcome!\n{listing}"),
        f"jobs for all\n{of_all(listing)}",
    ):
        assert PBS.parse_status(command_result(output), None).keys() == {"7.node01"}


@pytest.mark.parametrize(("code", "more"), [(0, SERVER), (7, "")])
def test_a_listing_of_all_jobs_is_wrapped_in_two_lines(tmp_path: Path, code: int, more: str) -> None:
    fake = tmp_path / "qstat"
    fake.write_text(f"#!/bin/sh\n[ \"$1\" != -B ] || {{ printf '{SERVER}'; exit; }}\nexit {code}\n")
    fake.chmod(0o755)
    command = TORQUE.find()

    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    ran = subprocess.run(command.argv, env=environment, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (code, of_all(more, getpass.getuser()))


@pytest.mark.parametrize(
    ("variables", "tag"),
    [
        ("JPSI_TAG=jpsi-5 1,C=d", None),
        ("A=b,JPSI_TAG=jpsi-5-1,C=d", "jpsi-5-1"),
        ("JPSI_TAG=jpsi-5-1", "jpsi-5-1"),
        ("A=b", ""),
        ("NOTE=was JPSI_TAG=jpsi-4-1,JPSI_TAG=jpsi-5-1", "jpsi-5-1"),
        ("NOTE=x,JPSI_TAG=jpsi-4-1,JPSI_TAG=jpsi-5-1", None),
        ("NOTE=was JPSI_TAG=jpsi-4-1", None),
        ("JPSI_TAG=jpsi-5,1,C=d", None),
        ("JPSI_TAG=jpsi-5- ,C=d", None),
        ("JPSI_TAG=", None),
        ("JPSI~TAG=jpsi-5-1,C=d", None),
        ("JPSI_TASK=1,C=d", ""),
        ("A=/data/jpsi-docs,C=d", ""),
    ],
)
def test_the_tag_among_the_variables(variables: str, tag: str | None) -> None:
    assert parse_tag(variables, is_complete=True) == tag
    assert parse_tag(variables, is_complete=False) == (tag or None)


def test_a_damaged_tag_is_not_missing() -> None:
    """A job without a tag is another one, so jpsi would take its own for lost."""
    before, variable, after = "A=b,", f"JPSI_TAG={_TAG}", ",PBS_O_HOST=node01"
    for at in range(len(variable)):
        for gone in range(4):
            for noise in _NOISE:
                damaged = f"{before}{variable[:at]}{noise}{variable[at + gone :]}{after}"
                assert parse_tag(damaged, is_complete=True) in {_TAG, None}, damaged


def test_missing_variables_do_not_make_a_job_foreign() -> None:
    """Torque shows variables only to the owner, if it knows the client's host."""
    for hooks, output in ((PBS, in_json("7", job_state="R")), (TORQUE, in_xml("7", job_state="R"))):
        assert hooks.parse_status(command_result(output), ["7"])["7"].tag is None


def test_every_job_has_its_state_whatever_the_names_of_variables() -> None:
    """The older printer does not escape a line break in a name, which only programs can set."""
    output = in_json("7", job_state="R", Variable_List={"A": "b", "C": "d"}).replace('"C"', '"odd\nC"')

    seen = PBS.parse_status(command_result(output), ["7"])["7"]

    assert (seen.state, seen.tag) == (JobState.ACTIVE, None)


def test_a_value_that_is_a_list_of_objects() -> None:
    """PBS prints values that look like JSON as JSON."""
    output = in_json("7", comment=[{"a": 1}], job_state="R", Variable_List={"A": [{"b": {"c": 2}}]})
    # as cJSON breaks lines
    output = re.sub(r"\[\n\t*\{", "[{", output)
    output = re.sub(r"\}\n\t*\]", "}]", output)

    assert PBS.parse_status(command_result(output), ["7"])["7"].state is JobState.ACTIVE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (',\n\t\t\t"substate":\t42', ","),
        ('"R",\n', '"R"\n'),
        ('\t\t\t"job_state":\t"R",\n', ""),
        ('"Jobs"', '"Queue"'),
        ('"Jobs":\t{', '"Jobs":\t"x",'),
        ("\t\t}\n", ""),
        ('"7.node01"', '"workq"'),
        ('\t"pbs_server":', '\t\t"pbs_server":'),
    ],
)
def test_a_listing_with_mismatched_frame_lines_is_refused(before: str, after: str) -> None:
    text = in_json("7.node01", job_state="R", substate=42)
    assert PBS.parse_status(command_result(text), ["7.node01"])["7.node01"].state is JobState.ACTIVE
    assert text.count(before) == 1

    with pytest.raises(SubmitException, match="no answer"):
        PBS.parse_status(command_result(text.replace(before, after)), ["7.node01"])


def test_a_job_with_an_unreadable_owner_is_included() -> None:
    owners = {"7.node01": "tester@node01", "8.node01": "te~ter@node01", "9.node01": "other@node01"}
    listing = in_frame({it: {"job_state": "R", "Job_Owner": owner} for it, owner in owners.items()})

    assert list(PBS.parse_status(command_result(of_all(listing)), None)) == ["7.node01", "8.node01"]
