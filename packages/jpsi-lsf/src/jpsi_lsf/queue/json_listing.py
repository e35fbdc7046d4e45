"""Parses the output of `bjobs -o … -json`, which LSF 10.1.0.2 and later print.

`bjobs` uses it where the probe has found that LSF knows these options; else it uses `long_listing`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from jpsi.plugin import Observation
from jpsi.plugin.kit import is_nearly

from ..native_ids import IDS
from .observations import End, is_termination, job_tag, make_observation, nodes

#: The fields for `bjobs -o`. If LSF does not know one of them, it prints no jobs at all.
FIELDS = "jobid jobindex stat exit_code exit_reason pend_reason exec_host job_description command"

#: One job's fields, by their names in capital letters.
Record = Mapping[str, str]

_OBJECT = re.compile(r"\{")
# A field of a record; its value may contain any text
_FIELD = re.compile(r'"([A-Z_]+)"\s*:\s*"(.*?)"\s*(?=,\s*"[A-Z_]+"\s*:|\}\s*[,\]])', re.DOTALL)
_DOCUMENT = re.compile(r'"JOBS"\s*:\s*(\d+)\s*,\s*"RECORDS"\s*:\s*\[(.*)\]\s*\}', re.DOTALL)
_NO_VALUES = frozenset({"", "-"})
_REQUESTED = frozenset(FIELDS.upper().split())
# The fields that decide a job's Observation
_OBSERVED = ("STAT", "EXIT_CODE", "EXIT_REASON", "PEND_REASON", "EXEC_HOST", "JOB_DESCRIPTION", "COMMAND")
_ERROR = re.compile(r"Job <.+> is not found")
_TERMINATION = "TERM_"
_HOSTS = re.compile(r"(?:(?:\d+\*)?[A-Za-z0-9][A-Za-z0-9_.-]*:?)*|-")


def parse_records(output: str) -> list[Record] | None:
    """Return the jobs in bjobs's output, skipping text before them; None if they are missing or incomplete.

    A job that LSF does not know has the field ERROR and no STAT. Complete output has the number of jobs that
    it announces, and each job has all requested fields.
    """
    decoder = json.JSONDecoder(strict=False)
    for start in _OBJECT.finditer(output):
        try:
            document, _ = decoder.raw_decode(output, start.start())
        except ValueError:
            continue
        if isinstance(document, dict) and isinstance(document.get("RECORDS"), list):
            return _complete_records(document["RECORDS"], document.get("JOBS"))
    match = _DOCUMENT.search(output)
    return None if match is None else _complete_records(_parse_invalid_json(f"{match[2]}]"), int(match[1]))


def _parse_invalid_json(text: str) -> list[dict[str, str]]:
    """Return the jobs in invalid JSON, which results if LSF does not escape a value of any job."""
    records: list[dict[str, str]] = []
    for field, value in _FIELD.findall(text):
        if field == "JOBID":
            records.append({})
        if records:
            records[-1][field] = value.replace("\\/", "/")
    return records


def _complete_records(records: list[Any], count: object) -> list[Record] | None:
    """Return the records if each is valid and their number is the announced one; else None."""
    is_valid = all(map(_is_record, records))
    # volclava 2.2 counts unknown jobs; for LSF that is not known, so both numbers are accepted
    known = [record for record in records if is_valid and "STAT" in record]
    return list[Record](records) if is_valid and count in {len(records), len(known)} else None


def _is_record(record: object) -> bool:
    """Return True if a record has all requested fields of a job, or says that there is no such job."""
    if not isinstance(record, dict) or not all(isinstance(value, str) for value in record.values()):
        return False
    if "ERROR" in record:
        return "STAT" not in record and _ERROR.fullmatch(record["ERROR"]) is not None
    return record.keys() >= _REQUESTED and IDS.is_id(record_id(record)) and _has_valid_values(record)


def _has_valid_values(record: Record) -> bool:
    """Return True if the record's values look like those that LSF prints; the state may be any word."""
    code, termination = record["EXIT_CODE"], record["EXIT_REASON"].partition(":")[0]
    is_termination_word = termination.startswith(_TERMINATION) or is_nearly(
        termination[: len(_TERMINATION)], [_TERMINATION]
    )
    return (
        (code in _NO_VALUES or code.isdecimal())
        and (is_termination(termination) or not is_termination_word)
        and (not record["JOBINDEX"] or record["JOBINDEX"].isdecimal())
        and _HOSTS.fullmatch(record["EXEC_HOST"].strip()) is not None
    )


def record_id(record: Record) -> str:
    """Return the native id of a job; the index of an array element may be in a field of its own.

    >>> [record_id({"JOBID": "7", "JOBINDEX": index}) for index in "03"]
    ['7', '7[3]']
    >>> record_id({"JOBID": "7[3]", "JOBINDEX": "3"})
    '7[3]'
    """
    name, index = record["JOBID"], record.get("JOBINDEX", "")
    return f"{name}[{index}]" if index.isdecimal() and index != "0" and "[" not in name else name


def observed_fields(record: Record) -> tuple[str, ...]:
    """Return the fields of a record for `observe_record`; elements of an array may have equal ones."""
    return tuple(record[field] for field in _OBSERVED)


def observe_record(fields: tuple[str, ...]) -> Observation:
    """Return the Observation for the fields of a record."""
    native_state, code, termination, pending, hosts, description, command = fields
    # DONE comes without a code, which is 0 or one that the site counts as a success.
    exit_code = int(code) if code.isdecimal() else 0 if native_state == "DONE" else None
    observation = make_observation(
        native_state,
        pending=_text(pending),
        end=End(exit_code, "" if termination in _NO_VALUES else termination),
        ran_on=nodes(hosts),
    )
    return attrs.evolve(observation, tag=job_tag(description, command))


def _text(text: str) -> str:
    return "" if text in _NO_VALUES else " ".join(text.rstrip("; \n").split())
