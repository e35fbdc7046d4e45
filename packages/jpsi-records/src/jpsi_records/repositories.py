"""Trees of git repositories, which are fetched into one of the records' own, so that they stay."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .errors import StoreError
from .mounts import GitTree

# What surrounds us must not decide which repository is asked, nor may git ask anybody anything.
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
_PATIENCE = 600


class Repositories:
    """The repository that holds what was ever fetched."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def resolve(self, mount: GitTree) -> list[GitTree]:
        """The trees, or files, that a mount may stand for, the newest first, each once.

        Raises:
            StoreError: the repository cannot be read, or has nothing like that.
        """
        if mount.is_pinned:
            return [mount]
        namespace = self._fetch(mount.url or "")
        commits = self._commits(mount, namespace)
        if not commits:
            msg = f"{mount.url} has no commit in {mount.revisions}"
            raise StoreError(msg)
        found = dict.fromkeys(it for commit in commits if (it := self._at(commit, mount.path)) is not None)
        if not found:
            msg = f"{mount.url} has no {mount.path} in {mount.commit or mount.revisions}"
            raise StoreError(msg)
        return [GitTree(**{kind: name}) for kind, name in found]

    def lay_out(self, mount: GitTree, target: Path) -> None:
        """Make a directory with a tree, or a file with a blob."""
        target.parent.mkdir(parents=True, exist_ok=True)
        if mount.blob is not None:
            target.write_bytes(self._git("cat-file", "blob", mount.blob))
            return
        target.mkdir(exist_ok=True)
        archive = self._git("archive", "--format=tar", mount.tree or "")
        _run(["tar", "-xf", "-", "-C", str(target)], archive)

    def _fetch(self, url: str) -> str:
        """Fetch all of a repository; returns below which references it is."""
        if not (self._root / "HEAD").exists():
            self._root.mkdir(parents=True, exist_ok=True)
            self._git("init", "--bare", "--quiet")
            # What is reachable no more may still be what an execution had.
            self._git("config", "gc.auto", "0")
        namespace = f"refs/of/{url.encode().hex()[:200]}"
        place = str(Path(url).absolute()) if Path(url).exists() else url
        self._git("fetch", "--quiet", "--no-tags", "--", place, f"+refs/*:{namespace}/*")
        return namespace

    def _commits(self, mount: GitTree, namespace: str) -> list[str]:
        if mount.commit is not None:
            return [self._commit(mount.commit, namespace, mount.url or "")]
        revisions = mount.revisions or ""
        lower, dots, upper = revisions.partition("...") if "..." in revisions else revisions.partition("..")
        ends = [self._commit(it, namespace, mount.url or "") for it in (lower, upper) if it]
        return self._git("rev-list", dots.join(ends) if dots else ends[0]).decode().split()

    def _commit(self, name: str, namespace: str, url: str) -> str:
        """The commit that a name stands for there, such as `main~2` or a tag."""
        for prefix in (f"{namespace}/heads/", f"{namespace}/tags/", f"{namespace}/", ""):
            try:
                return (
                    self._git("rev-parse", "--verify", "--quiet", f"{prefix}{name}^{{commit}}")
                    .decode()
                    .strip()
                )
            except StoreError:
                continue
        msg = f"{url} has no commit {name}"
        raise StoreError(msg)

    def _at(self, commit: str, path: str) -> tuple[str, str] | None:
        """Whether a tree or a blob is at a path of a commit, and its hash."""
        if path == "/":
            return "tree", self._git("rev-parse", f"{commit}^{{tree}}").decode().strip()
        listed = self._git("ls-tree", "-z", commit, "--", path.strip("/")).decode().rstrip("\0")
        if not listed:
            return None
        _, kind, name = listed.partition("\t")[0].split(" ")
        return (kind, name) if kind in {"tree", "blob"} else None

    def _git(self, *arguments: str) -> bytes:
        return _run(["git", f"--git-dir={self._root}", *arguments])


def _run(command: list[str], stdin: bytes = b"") -> bytes:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603  git and tar, with arguments that begin with no dash
            command,
            input=stdin,
            capture_output=True,
            check=False,
            env={**kept, **_ENVIRONMENT},
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        msg = f"{command[0]} could not be run: {e}"
        raise StoreError(msg, e) from e
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        msg = f"{command[0]} failed: {told[-1] if told else f'exit code {done.returncode}'}"
        raise StoreError(msg)
    return done.stdout
