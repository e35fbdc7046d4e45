"""Support for several test files: recordings, a site, and the hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jpsi.plugin import CommandResult, Site, SubmitContext
from jpsi_oar.config import OarConfig
from jpsi_testing import command_result

RECORDINGS = Path(__file__).parent / "recordings" / "2.5.9"
SITE = Site(config=OarConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")


def site(**config: Any) -> Site:
    return Site(config=OarConfig(**config))


def row(number: int, state: str = "Running", **fields: Any) -> dict[str, Any]:
    """Return a job as `oarstat -f -J` prints it."""
    name = fields.get("name", "a jpsi-abc-1")
    return {
        "Job_Id": number,
        "array_id": number,
        "array_index": 1,
        "name": name,
        "owner": "me",
        "state": state,
        "queue": "default",
        "project": "default",
        "types": [],
        "submissionTime": 1000,
        "startTime": 0 if state in {"Waiting", "Hold"} else 1010,
        "stopTime": 1020 if state in {"Terminated", "Error"} else 0,
        "scheduledStart": None,
        "exit_code": 0 if state == "Terminated" else None,
        "message": "R=1,W=0:10:0,J=B",
        "initial_request": f"oarsub --name={name} true",
        "assigned_network_address": ["oarnode01"],
        "events": [],
    } | fields


def event(kind: str, description: str = "because") -> dict[str, Any]:
    return {
        "type": kind,
        "description": description,
        "date": 1020,
        "job_id": 1,
        "event_id": 1,
        "to_check": "NO",
    }


def listing(*rows: dict[str, Any]) -> CommandResult:
    """Return the output of oarstat with these jobs, and with what a site prints before it."""
    document = {str(it["Job_Id"]): it for it in rows}
    return command_result(f"Hello\n{json.dumps(document, indent=3)}\n" if rows else "Hello\n")
