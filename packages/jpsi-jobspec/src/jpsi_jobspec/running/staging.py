"""Stages and writes files for steps: archives in the folder of a run give each node the files it lacks.

The starter runs the steps of an entry by it before it makes the entry's jobs.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from jpsi import JobFiles, JpsiError

from ..document import Step

# The name of the staged path in its archive.
_MEMBER = "staged"

# `mv -T` creates the directory, and never moves into one that another process has created meanwhile. A job
# that is cancelled while it copies leaves nothing half done behind.
_UNPACK = """\
folder=$1 left=$2 new=
shift 2
trap 'rm -rf -- "$new"; exit 129' HUP
trap 'rm -rf -- "$new"; exit 130' INT
trap 'rm -rf -- "$new"; exit 143' TERM
while [ "$left" -gt 0 ]; do
  path=$1 archive=$folder/$2 left=$((left - 1))
  shift 2
  case $path in '~/'*) path=$HOME/${path#'~/'} ;; esac
  [ -e "$path" ] && continue
  if [ ! -f "$archive" ]; then
    echo "jpsi: $path is to be staged, and is neither on $(hostname) nor in an archive of the run" >&2
    exit 125
  fi
  parent=$(dirname -- "$path") && mkdir -p -- "$parent" && new=$(mktemp -d "$parent/.jpsi.XXXXXX") || exit 125
  tar -xf "$archive" -C "$new" && { mv -nT -- "$new/staged" "$path" || :; }
  rm -rf -- "$new" && new=
  [ -e "$path" ] && continue
  echo "jpsi: $path could not be staged on $(hostname)" >&2
  exit 125
done
trap - HUP INT TERM
exec "$@"
"""


def archive_path(path: str, folder: Path) -> Path:
    """Return the path of a staged path's archive, which need not exist."""
    return folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.tar"


def exists_locally(path: str) -> bool:
    """Return True if a path exists on this machine; a link must lead to something."""
    # returns False where the user has no permission to look
    return os.path.exists(Path(path).expanduser())  # noqa: PTH110


def pack(path: str, folder: Path) -> None:
    """Write the archive of a path; concurrent readers see the old archive or the new one as a whole."""
    folder.mkdir(mode=0o700, exist_ok=True)
    target = archive_path(path, folder)
    file, new = tempfile.mkstemp(dir=folder, prefix="new.")
    try:
        with os.fdopen(file, "wb") as archive_file, tarfile.open(fileobj=archive_file, mode="w") as archive:
            # the target of a link, since the node may not have it
            archive.add(Path(path).expanduser().resolve(), _MEMBER)
            archive.close()
            archive_file.flush()
            os.fsync(archive_file.fileno())
        Path(new).rename(target)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise


def is_shared_with_nodes(folder: Path, path: Path) -> bool:
    """Return True if nodes see a path as they see a folder: both are below home, on one file system.

    The folder of a run has to be visible wherever its jobs run.
    """
    home, parent = Path.home().resolve(), folder.parent.resolve()
    if not (parent.is_relative_to(home) and path.resolve().is_relative_to(home)):
        return False
    return parent.stat().st_dev == path.stat().st_dev


def staging_command(paths: Iterable[str], folder: Path, command: Iterable[str]) -> tuple[str, ...]:
    """Return a command that first provides these paths on its node, and then runs the given one."""
    pairs = [(path, archive_path(path, folder).name) for path in paths]
    words = (word for pair in pairs for word in pair)
    return ("/bin/sh", "-c", _UNPACK, "stage", str(folder), str(len(pairs)), *words, *command)


def run_steps(steps: Iterable[Step], files: JobFiles, staging: Path | None) -> str | None:
    """Stage and write the files of steps; return what went wrong, or None.

    A file to stage has to be on this machine. The client sends it to a remote host; where jobs run on nodes
    that may not see the files of this machine, it packs the file into an archive.

    Args:
        steps: to do, in their order.
        files: those where jobs run.
        staging: the folder for archives; None where all jobs run on this machine.
    """
    for step in steps:
        try:
            if step.content is not None:
                _write(step.path, step.content, files)
            else:
                _stage(step.path, files, staging)
        except JpsiError as e:
            return str(e)
        except OSError as e:
            return f"{step.path}: {e.strerror}"
    return None


def _stage(path: str, files: JobFiles, staging: Path | None) -> None:
    local_path = Path(path).expanduser()
    if not exists_locally(path):
        if staging is not None and archive_path(path, staging).exists():
            # the file was on the host that submitted the group, and processes take it from the archive
            return
        raise FileNotFoundError(2, "it is to be staged, and does not exist on this machine")
    if not files.are_local:
        files.put(str(local_path), path)
    elif staging is not None and not is_shared_with_nodes(staging, local_path):
        pack(path, staging)


def _write(path: str, content: str, files: JobFiles) -> None:
    if files.are_local:
        target = Path(path).expanduser()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".jpsi") as file:
        file.write(content)
        file.flush()
        files.put(file.name, path)
