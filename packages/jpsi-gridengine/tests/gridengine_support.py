"""What several test files share: recordings, a site, and the hooks."""

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
    """What `qstat -xml` prints of these rows."""
    lines = ["Hello", "<?xml version='1.0'?>", '<job_info  xmlns:xsd="x">', "  <queue_info>", *rows]
    return command_result("\n".join([*lines, "  </queue_info>", "</job_info>", ""]))


def row(number: int | str, state: str = "r", name: str = "a", *more: str) -> str:
    """A row of it."""
    fields = [
        f"<JB_job_number>{number}</JB_job_number>",
        f"<JB_name>{name}</JB_name>",
        f"<state>{state}</state>",
        *more,
    ]
    return "\n".join(['    <job_list state="x">', *(f"      {it}" for it in fields), "    </job_list>"])


RULE = "=" * 62


def twice(*accounts: str, said: str = "") -> CommandResult:
    """What comes of asking qacct for accounts, which it may complain of."""
    end = f"==\njobname      {len(accounts)} accounts\n"
    return command_result("".join([*accounts, end]) * 2, said * 2)


def answer_of(recorded: CommandResult) -> CommandResult:
    """What is answered where qacct answers what was recorded, all of which are accounts."""
    _, *accounts = recorded.stdout.split(RULE + "\n")
    return twice(*(f"{RULE}\n{text}" for text in accounts))


def asked(folder: Path, native_ids: Sequence[str], qacct: str, root: str = "") -> CommandResult:
    """What the command answers that asks for jobs, where this is qacct."""
    program = folder / "bin" / "qacct"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{qacct}\n")
    program.chmod(0o755)
    known = attrs.evolve(SITE, offers={"root": root} if root else {})
    command = hooks.query_finished(native_ids, known)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    done = subprocess.run(command.argv, env=environment, text=True, capture_output=True, check=False)
    return command_result(done.stdout, done.stderr, returncode=done.returncode)


def prints(folder: Path, recorded: CommandResult) -> str:
    """A program that answers what was recorded."""
    (folder / "stdout").write_text(recorded.stdout)
    (folder / "stderr").write_text(recorded.stderr)
    return f"cat '{folder}/stdout'; cat '{folder}/stderr' >&2; exit {recorded.returncode}"
