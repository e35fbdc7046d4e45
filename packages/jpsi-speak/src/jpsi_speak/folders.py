"""The directory of a queue: its target, its commands, and what the server keeps there."""

from __future__ import annotations

import json
import os
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import quote

import platformdirs

import jpsi
from jpsi_engine import make_private_directory
from jpsi_testing import fake
from jpsi_testing.fake import find_fake, write_commands

from . import client
from .server import GROUP, TARGET


def prepare(language: str, executor: str | None, url: str | None, *, is_lenient: bool) -> Path:
    """Make the directory of the queue of an executor, and return that of its commands, for PATH.

    Raises:
        JpsiError: the language or the executor is unknown, or the directory cannot be made.
    """
    speaker = find_fake(language, GROUP)
    # an error is reported here, and not by the server
    with jpsi.JobExecutor(executor, url=url) as opened:
        name = executor or opened.name
    folder = queue_folder(language, name, url)
    try:
        mode = "lenient" if is_lenient else "strict"
        make_private_directory(folder / mode, "the directory of jpsi speak")
        target = json.dumps({"language": language, "executor": name, "url": url})
        temporary = folder / f".target.{os.getpid()}"
        temporary.write_text(target, encoding="utf-8")
        temporary.replace(folder / TARGET)
        protocol = str(Path(fake.__file__).parent)
        program = [client.__file__, protocol, str(folder), mode, os.uname().nodename]
        write_commands(folder / mode, speaker.commands, program)
    except OSError as e:
        msg = f"the directory {folder} cannot be made: {e}"
        raise jpsi.SubmitException(msg, e) from e
    return folder / mode


def are_known(language: str, executor: str | None) -> bool:
    """Return True if a language is installed, and an executor is installed or a configured target."""
    executors = (it for it in jpsi.plugins(load=False) if it.kind == "executor")
    names = {name for it in executors for name in (it.name, *it.aliases)} | {*jpsi.configuration().targets}
    is_spoken = language.lower() in entry_points(group=GROUP).names
    return is_spoken and (executor is None or executor.lower() in names)


def queue_folder(language: str, executor: str, url: str | None) -> Path:
    """Return the directory of the queue that the programs of this user share."""
    name = executor if url is None else f"{executor}@{url}"
    return platformdirs.user_state_path("jpsi") / "speak" / language.lower() / quote(name.lower(), safe="@")
