"""The blob store: stores files under the digest of their content, written once, never changed, and verified.

It holds the inputs and outputs of executions. Jobs get copies, so that they cannot change what is stored.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import attrs

from ..errors import SourceError, StoreError, store_errors
from .atomic_files import make_parent_directory
from .manifests import Entry, Manifest, digest_of, read_manifest, write_manifest


@attrs.frozen(slots=True)
class Captured:
    """The result of storing a directory."""

    digest: str
    #: What was left out, one sentence for each file.
    left_out: tuple[str, ...] = ()
    #: False if some of that could not be read, which may hold what the user needs.
    is_whole: bool = True


# The end of a sentence about a file.
_UNREADABLE = "cannot be read by this user"


class Blobs:
    """The blob store in one directory of the records."""

    def __init__(self, root: Path, make: Callable[[], None] = lambda: None) -> None:
        self._root = root
        self._make = make

    def path(self, digest: str) -> Path:
        """Return the path for a digest, whether or not the file exists."""
        letters = digest.removeprefix("sha256:")
        return self._root / letters[:2] / letters[2:]

    def add_bytes(self, content: bytes) -> str:
        """Store content and return its digest."""
        digest = digest_of(content)
        if not self._has(digest, len(content)):
            with self._being_written(digest) as target:
                target.write_bytes(content)
        return digest

    def add_file(self, source: Path) -> Entry:
        """Store the content of a file; raise `SourceError` if it cannot be read."""
        with store_errors(f"{source} cannot be read", SourceError):
            digest, size = _digest_and_size(source)
        if not self._has(digest, size):
            with self._being_written(digest) as target:
                shutil.copyfile(source, target)
                if _digest_and_size(target) != (digest, size):
                    raise StoreError(f"{source} changes while it is read")
        return Entry(digest, size, bool(source.stat().st_mode & stat.S_IXUSR))

    def add_tree(
        self, source: Path, globs: Collection[str] = (), *, omits_unreadable: bool = False
    ) -> Captured:
        """Store a file or a directory as a collection; patterns, if given, select the files.

        Links that lead out of the directory or nowhere are left out, and so are special files.

        Args:
            source: the file or directory.
            globs: the patterns; a directory need not be readable if they can select nothing in it.
            omits_unreadable: True to leave out also what this user has no permission to read.

        Raises:
            SourceError: it does not exist, or a file or a directory in it cannot be read.
            StoreError: a file cannot be written.
        """
        manifest: dict[str, Entry] = {}
        left_out, unread = list[str](), list[str]()

        def omit(at: str, error: SourceError) -> None:
            # Another reason, such as a stale file handle, may be gone when the caller tries again.
            if not (omits_unreadable and isinstance(error.exception, PermissionError)):
                raise error
            unread.append(f"{at} cannot be read: {error.exception.strerror}")

        for at, path in _files(source, globs, omit):
            try:
                found = self._entry(path, source)
            except SourceError as e:
                omit(at, e)
                continue
            if isinstance(found, Entry):
                manifest[at] = found
            else:
                left_out.append(f"{at} {found}")
        return Captured(self.add_manifest(manifest), (*left_out, *unread), is_whole=not unread)

    def _entry(self, path: Path, root: Path) -> Entry | str:
        """Store a file or a link of a directory; return why if it has no place in a collection.

        Raises:
            SourceError: it cannot be read.
        """
        with store_errors(f"{path} cannot be read", SourceError):
            mode = path.lstat().st_mode
            link = _inner_link(path, root) if stat.S_ISLNK(mode) else None
        if stat.S_ISREG(mode):
            return self.add_file(path)
        if stat.S_ISLNK(mode):
            is_outside = "is a link that leads out of the directory, or nowhere"
            return is_outside if link is None else Entry("", 0, link=link)
        return "is no file"

    def add_manifest(self, manifest: Manifest) -> str:
        """Store a manifest and return the digest of its collection."""
        return self.add_bytes(write_manifest(manifest).encode())

    def manifest(self, digest: str) -> Manifest:
        """Return the manifest of a collection.

        Raises:
            StoreError: the manifest is missing, unreadable or damaged.
        """
        with store_errors(f"collection {digest} cannot be read"):
            content = self.path(digest).read_bytes()
        if digest_of(content) != digest:
            raise StoreError(f"collection {digest} was changed")
        return read_manifest(content.decode())

    def lay_out(self, digest: str, target: Path, *, is_writable: bool) -> None:
        """Copy a collection into a directory; changes there do not change the collection."""
        target.mkdir(parents=True, exist_ok=True)
        for at, entry in self.manifest(digest).items():
            path = target / at
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.link is None:
                self.lay_file(entry.digest, path, is_executable=entry.is_executable, is_writable=is_writable)
            else:
                path.symlink_to(entry.link)
        if not is_writable:
            for folder in (target, *(it for it in target.rglob("*") if it.is_dir() and not it.is_symlink())):
                folder.chmod(0o555)

    def lay_file(
        self, digest: str, target: Path, *, is_executable: bool = False, is_writable: bool = False
    ) -> None:
        """Copy a blob to a path."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with store_errors(f"{digest} cannot be laid out at {target}"):
            shutil.copyfile(self.path(digest), target)
        target.chmod((0o644 if is_writable else 0o444) | (0o111 if is_executable else 0))

    def trouble(self, digest: str, *, may_read: Callable[[Path], bool] | None = None) -> str | None:
        """Return why a user cannot use a collection; None if the user can.

        It checks sizes and not digests, as reading all content takes time.

        Args:
            digest: the digest of the collection.
            may_read: returns True if the user may read a file; by default, for this process.
        """
        can_read = may_read or functools.partial(os.access, mode=os.R_OK)
        try:
            manifest = self.manifest(digest)
        except StoreError as e:
            return str(e)
        if not can_read(self.path(digest)):
            return f"collection {digest} {_UNREADABLE}"
        for at, entry in manifest.items():
            if entry.link is not None:
                continue
            path = self.path(entry.digest)
            try:
                size = path.stat().st_size
            except OSError:
                return f"{at} is not there any more"
            if size != entry.size:
                return f"{at} was changed"
            if not can_read(path):
                return f"{at} {_UNREADABLE}"
        return None

    def _has(self, digest: str, size: int) -> bool:
        # A truncated file, as after a full disk, is written again.
        path = self.path(digest)
        return path.exists() and path.stat().st_size == size

    @contextlib.contextmanager
    def _being_written(self, digest: str) -> Iterator[Path]:
        """Yield a temporary path; on success, rename it to the final name, so that no reader sees a part."""
        path = self.path(digest)
        beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        self._make()
        try:
            with store_errors(f"{path} cannot be written"):
                # Users who may enter these directories can read a file if they know its digest.
                for folder in (self._root, path.parent):
                    make_parent_directory(folder)
                yield beside
                beside.chmod(0o444)
                beside.replace(path)
        finally:
            # After success it is gone; where it cannot be looked up, it cannot have been created either.
            with contextlib.suppress(OSError):
                beside.unlink()


def _digest_and_size(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}", file.tell()


def _files(
    source: Path, globs: Collection[str], omit: Callable[[str, SourceError], None]
) -> Iterator[tuple[str, Path]]:
    """Yield the selected files and links; call `omit` with each directory that cannot be read."""
    with store_errors(f"{source} cannot be read", SourceError):
        is_directory = source.is_dir()
        if not is_directory and not source.exists():
            raise SourceError(f"{source} does not exist")
    if not is_directory:
        if _is_selected(source.name, globs):
            yield source.name, source
        return

    def refuse(error: OSError) -> None:
        folder = Path(error.filename or source)
        if folder == source:
            at = "the directory itself"
        else:
            at = str(folder.relative_to(source))
            if globs and not any(_may_match_below(at, it) for it in globs):
                return
        omit(at, SourceError(f"{folder} cannot be read: {error.strerror}", error))

    for folder, names, files in os.walk(source, onerror=refuse):
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118  never raises
        for name in sorted([*files, *links]):
            path = Path(folder, name)
            at = str(path.relative_to(source))
            if _is_selected(at, globs):
                yield at, path


def _is_selected(at: str, globs: Collection[str]) -> bool:
    return not globs or any(_matches(at, it) for it in globs)


def _may_match_below(folder: str, glob: str) -> bool:
    """Return True if a pattern can match a path in a directory.

    >>> _may_match_below("a", "*"), _may_match_below("a", "*/b"), _may_match_below("a", "**/b")
    (False, True, True)
    """
    parts, patterns = PurePosixPath(folder).parts, PurePosixPath(glob).parts
    for part, pattern in itertools.zip_longest(parts, patterns[: len(parts)]):
        if pattern == "**":
            return True
        if pattern is None or not fnmatchcase(part, pattern):
            return False
    return len(patterns) > len(parts)


def _matches(path: str, glob: str) -> bool:
    """Return True if a relative path matches a pattern, in which `**` is any number of directories.

    >>> _matches("a/b.txt", "*.txt"), _matches("a/b.txt", "**/*.txt"), _matches("b.txt", "**/*.txt")
    (False, True, True)
    """
    return _parts_match(PurePosixPath(path).parts, PurePosixPath(glob).parts)


def _parts_match(parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_parts_match(parts[skip:], patterns[1:]) for skip in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _parts_match(parts[1:], patterns[1:])


def _inner_link(path: Path, root: Path) -> str | None:
    """Return the target of a link if it exists and lies inside the directory, else None."""
    target = path.readlink()
    if target.is_absolute() or not path.exists():
        return None
    is_inside = path.resolve().is_relative_to(root.resolve())
    inner = itertools.dropwhile(lambda it: it == "..", target.parts)
    return str(target) if is_inside and ".." not in inner else None
