"""Support for several test files: recordings, a site, and the hooks."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from jpsi.plugin import CommandResult, Site, SubmitContext
from jpsi_gridengine import hooks
from jpsi_gridengine.config import GridEngineConfig
from jpsi_testing import Recording, command_result, read_recordings

RECORDINGS = Path(__file__).parent / "recordings" / "8.1.9"
SITE = Site(config=GridEngineConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")


def site(**config: Any) -> Site:
    return Site(config=GridEngineConfig(**config))


def recordings(scenario: str) -> list[Recording]:
    return read_recordings(RECORDINGS / f"{scenario}.json")


def listing(*rows: str) -> CommandResult:
    """Return the output of `qstat -xml` with these rows."""
    lines = ["Hello", "<?xml version='1.0'?>", '<job_info  xmlns:xsd="x">', "  <queue_info>", *rows]
    return command_result("\n".join([*lines, "  </queue_info>", "</job_info>", ""]))


def row(number: int | str, state: str = "r", name: str = "a", *more: str) -> str:
    """Return a row of that output."""
    fields = [
        f"<JB_job_number>{number}</JB_job_number>",
        f"<JB_name>{name}</JB_name>",
        f"<state>{state}</state>",
        *more,
    ]
    return "\n".join(['    <job_list state="x">', *(f"      {it}" for it in fields), "    </job_list>"])


RULE = "=" * 62


def twice(*accounts: str, stderr: str = "") -> CommandResult:
    """Return the output of the query for accounts, which runs qacct twice."""
    end = f"==\njobname      {len(accounts)} accounts\n"
    return command_result("".join([*accounts, end]) * 2, stderr * 2)


def twice_recorded(recorded: CommandResult) -> CommandResult:
    """Return the output of the query for accounts if qacct prints the recorded accounts."""
    _, *accounts = recorded.stdout.split(RULE + "\n")
    return twice(*(f"{RULE}\n{text}" for text in accounts))


def run_query(folder: Path, native_ids: Sequence[str], qacct: str, root: str = "") -> CommandResult:
    """Run the query for accounts with this shell text as qacct, and return the result."""
    program = folder / "bin" / "qacct"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{qacct}\n")
    program.chmod(0o755)
    known = attrs.evolve(SITE, offers={"root": root} if root else {})
    command = hooks.query_finished(native_ids, known)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    done = subprocess.run(command.argv, env=environment, text=True, capture_output=True, check=False)
    return command_result(done.stdout, done.stderr, returncode=done.returncode)


def replay(folder: Path, recorded: CommandResult) -> str:
    """Return shell text that prints recorded output."""
    (folder / "stdout").write_text(recorded.stdout)
    (folder / "stderr").write_text(recorded.stderr)
    return f"cat '{folder}/stdout'; cat '{folder}/stderr' >&2; exit {recorded.returncode}"
