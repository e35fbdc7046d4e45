"""Fetches git repositories, and finds and writes the trees that the mounts of a computation name.

Each repository is fetched into a permanent copy in the records' directory: an execution stays repeatable
after its commit has been removed from the remote repository.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import StoreError, store_errors
from ..model import GitTree, absolute_url, revision_words

_ENVIRONMENT = {
    # The user's environment must not select another repository, and git must not prompt.
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    # Replacement objects in a repository would change the content of a hash.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
# The user's configuration must not change the content of files.
_AS_IT_IS = ("-c", "core.autocrlf=false", "-c", f"core.attributesFile={os.devnull}")
# The seconds that git or tar may take.
_TIMEOUT_SECONDS = 600
_HASH = re.compile(r"[0-9a-f]{40,64}")
# The target of HEAD if the remote repository has none: a reference that never exists.
_NO_HEAD = "refs/jpsi/none"


class Repositories:
    """The copies of all repositories that were ever fetched, in one directory."""

    def __init__(self, root: Path, make: Callable[[], None] = lambda: None) -> None:
        self._root = root
        self._make = make

    def resolve(self, mount: GitTree) -> list[GitTree]:
        """Return the trees or files that a mount may refer to, the newest first, without duplicates.

        Raises:
            StoreError: the repository cannot be read, or lacks the commit or path.
        """
        if mount.is_pinned:
            return [mount]
        with self._fetched(mount.url or "") as copy:
            commits = copy.commits(mount)
            found = copy.at(commits, mount.path.strip("/"))
        if not found:
            raise StoreError(f"{mount.url} has no {mount.path} in {mount.commit or mount.revisions}")
        return [GitTree(**{kind: name}) for kind, name in found]

    def lay_out(self, mount: GitTree, target: Path) -> None:
        """Write a tree to a directory, or a blob to a file."""
        target.parent.mkdir(parents=True, exist_ok=True)
        wanted = mount.blob or mount.tree or ""
        copy = self._copy_with(wanted)
        if mount.blob is not None:
            target.write_bytes(copy.git("cat-file", "blob", wanted))
            return
        target.mkdir(exist_ok=True)
        _run(["tar", "-xf", "-", "-C", str(target)], copy.git(*_AS_IT_IS, "archive", "--format=tar", wanted))

    def _copy_with(self, wanted: str) -> _Copy:
        """Return the copy that contains a tree or a blob."""
        # Versions before 0.2 fetched all repositories into one.
        places = [*sorted(self._root.glob("of/*")), *([self._root] if (self._root / "HEAD").exists() else ())]
        for copy in map(_Copy, places):
            with contextlib.suppress(StoreError):
                copy.git("cat-file", "-e", wanted)
                return copy
        raise StoreError(f"no repository that was fetched has {wanted}")

    @contextlib.contextmanager
    def _fetched(self, url: str) -> Iterator[_Copy]:
        """Fetch a repository and yield its copy, locked against other processes."""
        # `git fetch` would resolve a relative path in its own working directory.
        place = absolute_url(url)
        # One copy for each URL: they share neither references nor objects.
        name = hashlib.sha256(place.encode()).hexdigest()
        folder = self._root / "of" / name
        self._make()
        with store_errors(f"{url} cannot be fetched into {self._root}"):
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock = (self._root / "of" / f".{name}.lock").open("w")
        with lock:
            # Where the file system has no locks, git's own lock files make one of two fetches fail.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            copy = _Copy(folder)
            copy.fetch(place)
            yield copy


class _Copy:
    """The copy of one repository, with the same references."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def fetch(self, place: str) -> None:
        """Fetch all references of the remote repository, and remove those that it no longer has.

        Objects are kept: an earlier execution may have used one that is no longer reachable.
        """
        # For an existing copy this changes nothing, or completes an interrupted init.
        self.git("init", "--bare", "--quiet", "--template=")
        head = _head(self.git("ls-remote", "--symref", "--", place, "HEAD").decode(errors="replace"))
        wanted = ["+refs/*:refs/*", *(["HEAD"] if head is not None else ())]
        options = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")
        self.git(*options, "fetch", "--quiet", "--no-tags", "--prune", "--", place, *wanted)
        # `git fetch` has written it; in this copy it has no use.
        (self._directory / "FETCH_HEAD").unlink(missing_ok=True)
        if head is not None and _HASH.fullmatch(head):
            self.git("update-ref", "--no-deref", "HEAD", head)
        else:
            self.git("symbolic-ref", "HEAD", head or _NO_HEAD)

    def commits(self, mount: GitTree) -> list[str]:
        """Return the commits that a mount may refer to, the newest first.

        Raises:
            StoreError: there are none.
        """
        if mount.commit is not None:
            return [self._commit(mount.commit, mount.url or "")]
        msg = f"{mount.url} has no commit in {mount.revisions}"
        try:
            listed = self.git("rev-list", "--date-order", *revision_words(mount.revisions or ""), "--")
        except StoreError as e:
            raise StoreError(f"{msg}: {e}", e) from e
        if not listed:
            raise StoreError(msg)
        return listed.decode().split()

    def _commit(self, name: str, url: str) -> str:
        try:
            found = self.git("rev-parse", "--verify", "--quiet", name).decode().strip()
            if _HASH.fullmatch(found):
                return self.git("rev-parse", "--verify", "--quiet", f"{found}^{{commit}}").decode().strip()
        except StoreError:
            pass
        raise StoreError(f"{url} has no commit {name}")

    def at(self, commits: list[str], path: str) -> list[tuple[str, str]]:
        """Return the types and hashes of the trees and blobs at a path of commits, without duplicates."""
        names = "".join(f"{commit}:{path}\n" for commit in commits)
        output = self.git("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=names.encode())
        objects = (line.split(" ") for line in output.decode().splitlines())
        return list(dict.fromkeys((it[0], it[1]) for it in objects if it[0] in {"tree", "blob"}))

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git on this copy and return its standard output.

        Raises:
            StoreError: git fails.
        """
        return _run(["git", f"--git-dir={self._directory}", *arguments], stdin)


def _head(output: str) -> str | None:
    r"""Return the HEAD of a remote repository: a reference or a commit; None if there is none.

    >>> _head("ref: refs/heads/main\tHEAD\n" + "1" * 40 + "\tHEAD\n"), _head("")
    ('refs/heads/main', None)
    """
    found = [
        what for line in output.splitlines() for what, _, name in [line.partition("\t")] if name == "HEAD"
    ]
    if not any(_HASH.fullmatch(it) for it in found):
        return None
    return next((it.removeprefix("ref: ") for it in found if it.startswith("ref: refs/")), found[0])


def _run(command: list[str], stdin: bytes = b"") -> bytes:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603  git and tar, with arguments that begin with no dash
            command,
            input=stdin,
            capture_output=True,
            check=False,
            env={**kept, **_ENVIRONMENT},
            timeout=_TIMEOUT_SECONDS,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as e:
        raise StoreError(f"{command[0]} could not be run: {e}", e) from e
    if done.returncode != 0:
        errors = done.stderr.decode(errors="replace").strip().splitlines()
        raise StoreError(f"{command[0]} failed: {errors[-1] if errors else f'exit code {done.returncode}'}")
    return done.stdout
