"""Transfers to the host of the jobs and back, with any file name and any failure on the way."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jpsi.contract.command import BytesResult, Command, CommandResult
from jpsi.contract.job_files import JobFiles, OutputPart
from jpsi.contract.transport import BytesTransport
from jpsi.model.errors import TransferError, TransportError
from jpsi_engine.host.local_transport import LocalTransport
from jpsi_engine.transfer import checksums, remote_commands, remote_shell
from jpsi_engine.transfer.job_files import open_job_files
from jpsi_engine.transfer.local_files import LocalFiles
from jpsi_engine.transfer.part_files import append, complete, open_part_file, part_path
from jpsi_engine.transfer.remote_copy import SMALL
from jpsi_engine.transfer.remote_files import RemoteFiles
from jpsi_testing import RemoteTransport

_HOSTILE = [
    "a b",
    "new\nline",
    "-rf",
    "q'\"$(x)`y`",
    "é",
    "*",
    "\udcff\udcfe",
    "x -> y",
    ".hidden",
    "~",
    "trailing\n",
    "number 7",
]


class RemoteHostTransport:
    """A transport to this host as if it were remote, with failures that a test chooses."""

    is_local = False

    def __init__(self) -> None:
        self.here = LocalTransport()
        #: The size of the input of each command.
        self.sent: list[int] = []
        #: May change a command and its input, or raise an error.
        self.before: Callable[[Command, bytes], tuple[Command, bytes]] = lambda command, data: (command, data)
        self.after: Callable[[BytesResult], BytesResult] = lambda result: result

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        return self.here.run(command, keep, ready)

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        command, data = self.before(command, data)
        self.sent.append(len(data))
        return self.after(self.here.exchange(command, data))

    def close(self) -> None:
        pass


_BROKEN = TransportError("the connection broke", transient=True, may_have_run=True)


@pytest.fixture
def transport() -> RemoteHostTransport:
    return RemoteHostTransport()


@pytest.fixture
def remote_files(transport: RemoteHostTransport) -> JobFiles:
    return open_job_files(transport)


@pytest.fixture(params=["local", "remote"])
def files(request: pytest.FixtureRequest, remote_files: JobFiles) -> JobFiles:
    return remote_files if request.param == "remote" else LocalFiles()


@pytest.fixture
def small_spans(monkeypatch: pytest.MonkeyPatch) -> int:
    """Make spans short, so that a file of a test has several."""
    span = 1 << 19
    for module in (checksums, remote_shell, remote_commands):
        monkeypatch.setattr(module, "SPAN", span)
    return span


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with every kind of entry that can be transferred."""
    root = tmp_path / "tree"
    (root / "sub" / "deeper").mkdir(parents=True)
    for name in _HOSTILE:
        (root / name).write_bytes(os.urandom(1000))
        (root / "sub" / name).mkdir()
        (root / f"link {name}").symlink_to(name)
    (root / "dangling").symlink_to("-no\nwhere\n")
    (root / "empty").write_bytes(b"")
    (root / "sub" / "large").write_bytes(os.urandom(SMALL * 9 + 1))
    (root / "program").write_bytes(b"#!/bin/sh\n")
    for name, mode in {"program": 0o755, "empty": 0o400, "sub/large": 0o600, "sub/*": 0o555}.items():
        (root / name).chmod(mode)
    (root / "sub" / "deeper").chmod(0o500)
    return root


def _contents(root: Path) -> dict[str, object]:
    def content(path: Path) -> object:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            return path.readlink()
        return (mode, path.read_bytes()) if path.is_file() else mode

    return {str(path.relative_to(root)): content(path) for path in sorted(root.rglob("*"))}


def _as_ordinary_user(do: Callable[[], object]) -> None:
    """Call a function in a child process as an ordinary user, whom file modes restrict."""
    child = os.fork()
    if not child:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(_NOBODY_UID, _NOBODY_UID, _NOBODY_UID)
                os.setresuid(_NOBODY_UID, _NOBODY_UID, _NOBODY_UID)
            do()
            code = 0
        except BaseException:  # noqa: BLE001  nothing else is to be done in this process
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


_NOBODY_UID = 65534


@pytest.fixture
def anywhere() -> Iterator[Path]:
    """Yield a directory that all users may use."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o777)
        yield path


def _leftovers(root: Path) -> list[Path]:
    return list(root.rglob(".jpsi-*"))


def test_the_transport_decides_between_local_and_remote_files(transport: RemoteHostTransport) -> None:
    class Shared:
        is_local = False

    assert isinstance(transport, BytesTransport)
    assert isinstance(open_job_files(transport), RemoteFiles)
    assert isinstance(open_job_files(LocalTransport()), LocalFiles)
    assert isinstance(open_job_files(Shared()), LocalFiles)  # type: ignore[arg-type]  # it has no other


def test_a_tree_survives_a_round_trip(files: JobFiles, tree: Path, tmp_path: Path) -> None:
    before = _contents(tree)

    files.put(str(tree), str(tmp_path / "there" / "tree"))
    files.get(str(tmp_path / "there" / "tree"), str(tmp_path / "back"))

    assert _contents(tmp_path / "there" / "tree") == before
    assert _contents(tmp_path / "back") == before
    assert not _leftovers(tmp_path)


def test_a_repeated_transfer_of_a_tree_changes_nothing(files: JobFiles, tree: Path, tmp_path: Path) -> None:
    for _ in range(2):
        files.put(str(tree), str(tmp_path / "there"))
        files.get(str(tmp_path / "there"), str(tmp_path / "back"))

    assert _contents(tmp_path / "back") == _contents(tree)


@pytest.mark.parametrize("size", [0, 1, SMALL, SMALL + 1, SMALL * 5])
@pytest.mark.parametrize("name", ["plain", *_HOSTILE])
def test_a_file_survives_a_round_trip(files: JobFiles, tmp_path: Path, size: int, name: str) -> None:
    source, there, back = (tmp_path / folder / name for folder in ("source", "there", "back"))
    source.parent.mkdir()
    source.write_bytes(os.urandom(size))
    source.chmod(0o640)

    files.put(str(source), str(there))
    files.get(str(there), str(back))

    assert back.read_bytes() == source.read_bytes()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (there, back)] == [0o640, 0o640]
    assert not _leftovers(tmp_path)


def test_existing_files_are_replaced_and_other_files_of_a_directory_stay(
    files: JobFiles, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir(mode=0o711)
    (source / "same").write_text("new")
    (source / "link").symlink_to("same")
    (target / "same").write_text("old")
    (target / "link").write_text("old")
    (target / "other").write_text("stays")

    files.put(str(source), str(target))

    assert (target / "same").read_text() == "new"
    assert (target / "link").readlink() == Path("same")
    assert (target / "other").read_text() == "stays"
    assert stat.S_IMODE(target.stat().st_mode) == 0o711


@pytest.mark.parametrize("closed", ["", "sub"])
@pytest.mark.parametrize("direction", ["get", "put"])
def test_a_tree_without_permissions_for_its_owner_is_transferred_again(
    files: JobFiles, anywhere: Path, closed: str, direction: str
) -> None:
    """Such a tree remains if a client is killed after the transfer and before it recorded the transfer."""

    def twice() -> None:
        (anywhere / "tree/sub").mkdir(parents=True)
        (anywhere / "tree/file").write_text("x")
        (anywhere / "tree/sub/file").write_text("x")
        (anywhere / "tree" / closed).chmod(0o555)
        move = getattr(files, direction)
        for _ in range(2):
            move(str(anywhere / "tree"), str(anywhere / "target"))
            assert _contents(anywhere / "target") == _contents(anywhere / "tree")
            assert stat.S_IMODE((anywhere / "target" / closed).stat().st_mode) == 0o555

    _as_ordinary_user(twice)


def test_set_id_bits_are_not_transferred(files: JobFiles, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("x")
    source.chmod(0o6755)

    files.put(str(source), str(tmp_path / "target"))

    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o755


def test_a_source_that_is_a_link_is_followed(files: JobFiles, tree: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tree)

    files.put(str(link), str(tmp_path / "there"))
    files.get(str(link), str(tmp_path / "back"))

    assert _contents(tmp_path / "there") == _contents(tmp_path / "back") == _contents(tree)
    assert not (tmp_path / "there").is_symlink()


def test_a_link_of_an_earlier_transfer_is_not_followed(files: JobFiles, tmp_path: Path) -> None:
    """A process on the remote host may have replaced a directory by a link for a while."""
    tree, outside, back = tmp_path / "tree", tmp_path / "outside", tmp_path / "back"
    tree.mkdir()
    outside.mkdir()
    (tree / "sub").symlink_to(outside)
    files.get(str(tree), str(back))
    (tree / "sub").unlink()
    (tree / "sub").mkdir()
    (tree / "sub/file").write_text("x")

    with pytest.raises(TransferError, match=f"{back}/sub cannot be written: File exists"):
        files.get(str(tree), str(back))

    assert not list(outside.iterdir())


def test_a_directory_may_be_reached_by_a_link(files: JobFiles, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "back").symlink_to("real")

    files.get(str(tree), str(tmp_path / "back"))

    assert _contents(tmp_path / "real") == _contents(tree)


def test_progress_reports_bytes_until_all_are_transferred(
    files: JobFiles, tree: Path, tmp_path: Path
) -> None:
    reports: list[tuple[int, int]] = []
    total = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())

    files.put(str(tree), str(tmp_path / "there"), lambda done, all_: reports.append((done, all_)))

    assert {of for _, of in reports} == {total}
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert (reports[0], reports[-1]) == ((0, total), (total, total))


@pytest.mark.parametrize("size", [1, SMALL + 1])
def test_an_obstacle_is_named_with_the_cause(files: JobFiles, tmp_path: Path, size: int) -> None:
    (tmp_path / "source").write_bytes(b"x" * size)
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_text("")

    for target, cause in (("directory", "Is a directory"), ("file/x", "(Not a directory|File exists)")):
        with pytest.raises(TransferError, match=f"/{target}\\b.* cannot be written: {cause}") as raised:
            files.put(str(tmp_path / "source"), str(tmp_path / target))
        assert not raised.value.transient


@pytest.mark.parametrize(("name", "cause"), [("none", "No such file or directory"), ("file/x", "Not a dir")])
def test_a_missing_source_is_named_with_the_cause(
    files: JobFiles, tmp_path: Path, name: str, cause: str
) -> None:
    (tmp_path / "file").write_text("")

    for move in (files.put, files.get):
        with pytest.raises(TransferError, match=f"/{name}\\b.* cannot be read: {cause}") as raised:
            move(str(tmp_path / name), str(tmp_path / "target"))
        assert not raised.value.transient


def test_a_special_file_is_named(files: JobFiles, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    os.mkfifo(tmp_path / "tree" / "pipe")

    for move in (files.put, files.get):
        with pytest.raises(TransferError, match="tree/pipe cannot be read: it is no file"):
            move(str(tmp_path / "tree"), str(tmp_path / "target"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_a_file_without_permission_is_named(files: JobFiles, tree: Path, tmp_path: Path) -> None:
    (tree / "sub" / "number 7" / "secret").write_text("")
    (tree / "sub" / "number 7" / "secret").chmod(0)
    (tmp_path / "closed").mkdir(mode=0o500)

    with pytest.raises(TransferError, match=r"secret.* cannot be read: Permission denied"):
        files.put(str(tree), str(tmp_path / "there"))
    with pytest.raises(TransferError, match=r"secret.* cannot be read: Permission denied"):
        files.get(str(tree), str(tmp_path / "back"))
    with pytest.raises(TransferError, match=r"closed/x.* cannot be written: Permission denied"):
        files.put(str(tree / "program"), str(tmp_path / "closed" / "x"))


def test_remote_paths_are_absolute(remote_files: JobFiles) -> None:
    with pytest.raises(ValueError, match="must be absolute"):
        remote_files.get("x", "y")


@pytest.mark.parametrize("is_local", [True, False], ids=["local", "remote"])
def test_a_path_on_the_host_of_the_jobs_may_begin_with_a_tilde(
    is_local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home there"
    home.mkdir()
    (tmp_path / "x").write_text("1")
    if is_local:
        monkeypatch.setenv("HOME", str(home))
    files = open_job_files(LocalTransport() if is_local else RemoteTransport(home))

    files.put(str(tmp_path / "x"), "~/runs/x")
    files.get("~/runs/x", str(tmp_path / "y"))

    assert (home / "runs" / "x").read_text() == (tmp_path / "y").read_text() == "1"
    assert files.read("~/runs/x", 0, 1) == OutputPart(b"1", 0, 1)
    assert files.read("~/runs/nothing", 0, 1) is None


def test_a_tilde_in_a_local_path_is_not_expanded(
    files: JobFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's shell has expanded ~ already."""
    monkeypatch.chdir(tmp_path)
    Path("~").write_text("1")

    files.put("~", str(tmp_path / "there"))

    assert (tmp_path / "there").read_text() == "1"


# -------------------------------------------------------------------------------------------- failures


def _cut_at(transport: RemoteHostTransport, at: int) -> None:
    """Break the connection in the middle of the n-th long input of a command."""
    count = 0

    def before(command: Command, data: bytes) -> tuple[Command, bytes]:
        nonlocal count
        if len(data) > SMALL // 2:
            count += 1
            if count == at:
                transport.here.exchange(command, data[: len(data) // 2])
                raise _BROKEN
        return command, data

    transport.before = before


def test_a_transfer_resumes_after_a_break_in_a_chunk_and_leaves_no_half_file(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path, small_spans: int
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(5_000_000))
    _cut_at(transport, 3)

    with pytest.raises(TransportError) as raised:
        remote_files.put(str(source), str(target))
    there = not target.exists()
    (part,) = _leftovers(tmp_path)
    modes = stat.S_IMODE(part.stat().st_mode)
    transport.before = lambda command, data: (command, data)
    transport.sent.clear()
    remote_files.put(str(source), str(target))

    assert raised.value.transient
    assert there
    assert modes == 0o600
    assert target.read_bytes() == source.read_bytes()
    assert 0 < sum(transport.sent) < 4_000_000
    assert not _leftovers(tmp_path)


def test_a_chunk_whose_reply_was_lost_is_not_appended_twice(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(5_000_000))
    results = iter(range(100))

    def after(result: BytesResult) -> BytesResult:
        if next(results) == 3:
            raise _BROKEN
        return result

    transport.after = after
    with pytest.raises(TransportError):
        remote_files.put(str(source), str(target))
    remote_files.put(str(source), str(target))

    assert target.read_bytes() == source.read_bytes()


def test_a_complete_file_without_confirmation_is_not_sent_again(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(5_000_000))
    remote_files.put(str(source), str(target))
    target.chmod(0o600)
    source.chmod(0o755)
    transport.sent.clear()

    remote_files.put(str(source), str(target))

    assert sum(transport.sent) == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


@pytest.mark.parametrize("size", [10, SMALL + 1])
def test_two_concurrent_gets_of_one_target_both_complete(files: JobFiles, tmp_path: Path, size: int) -> None:
    """Two jobs may stage out to the same path."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"x" * size)

    with open_part_file(str(target)) as part:
        append(part, b"half")
        files.get(str(source), str(target))
        assert target.read_bytes() == b"x" * size
        append(part, b" and half")
        complete(part, str(target), 0o600)

    assert target.read_bytes() == b"half and half"
    assert not _leftovers(tmp_path)


def test_one_of_two_concurrent_gets_resumes_after_a_break(tmp_path: Path) -> None:
    target = str(tmp_path / "target")
    with open_part_file(target) as first, open_part_file(target) as second:
        append(first, b"half")
        append(second, b"other")

    assert _leftovers(tmp_path) == [Path(part_path(target))]
    with open_part_file(target) as again:
        assert os.fstat(again.fd).st_size == len("half")


@pytest.mark.parametrize("size", [10, SMALL + 1])
def test_a_link_to_the_same_file_is_replaced_as_any_file(files: JobFiles, tmp_path: Path, size: int) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"x" * size)
    (tmp_path / "same").write_bytes(b"x" * size)
    target.symlink_to("same")

    files.put(str(source), str(target))

    assert not target.is_symlink()
    assert target.read_bytes() == b"x" * size


@pytest.mark.parametrize("at", [0, 700_000, 4_999_999])
def test_a_part_file_of_other_content_is_kept_up_to_the_first_difference(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path, small_spans: int, at: int
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(5_000_000))
    _cut_at(transport, 3)
    with pytest.raises(TransportError):
        remote_files.put(str(source), str(target))
    (part,) = _leftovers(tmp_path)
    data = bytearray(source.read_bytes())
    data[at] ^= 1
    source.write_bytes(data)
    transport.before = lambda command, data: (command, data)

    remote_files.put(str(source), str(target))

    assert target.read_bytes() == bytes(data)
    assert not part.exists()


def test_a_concurrent_write_of_another_process_is_detected(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(5_000_000))

    def before(command: Command, data: bytes) -> tuple[Command, bytes]:
        for part in _leftovers(tmp_path):
            with part.open("r+b") as file:
                file.write(b"mine")
        return command, data

    transport.before = before
    with pytest.raises(TransferError, match="changed while it was written, by another process") as raised:
        remote_files.put(str(source), str(target))

    assert raised.value.transient
    assert not target.exists()


def test_a_link_in_place_of_a_part_file_is_not_followed(remote_files: JobFiles, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for size in (10, 5_000_000):
        (tmp_path / "source").write_bytes(os.urandom(size))
        for move, target in ((remote_files.put, tmp_path / "up"), (remote_files.get, tmp_path / "down")):
            Path(part_path(str(target))).symlink_to(victim)
            move(str(tmp_path / "source"), str(target))
            assert not target.is_symlink()
            assert target.read_bytes() == (tmp_path / "source").read_bytes()

    assert victim.read_text() == "precious"


def test_get_resumes_where_it_broke(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path, small_spans: int
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(5_000_000))
    got: list[int] = []

    def after(result: BytesResult) -> BytesResult:
        got.append(len(result.stdout))
        if len(got) == 4:
            raise _BROKEN
        return result

    transport.after = after
    with pytest.raises(TransportError):
        remote_files.get(str(source), str(target))
    assert not target.exists()
    del got[:]
    got.extend([0] * 4)
    remote_files.get(str(source), str(target))

    assert target.read_bytes() == source.read_bytes()
    assert 1_000_000 < sum(got) < 4_500_000
    assert not _leftovers(tmp_path)


def test_a_file_that_grows_during_get_is_copied_at_its_first_size(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path
) -> None:
    for size in (100, 5_000_000):
        source = tmp_path / "source"
        source.write_bytes(b"x" * size)

        def after(result: BytesResult, source: Path = source) -> BytesResult:
            with source.open("ab") as file:
                file.write(b"more")
            return result

        transport.after = after
        remote_files.get(str(source), str(tmp_path / "target"))

        assert (tmp_path / "target").stat().st_size == size


def test_a_file_that_changes_during_get_is_a_transient_error(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path
) -> None:
    for size in (100, 5_000_000):
        source = tmp_path / "source"
        source.write_bytes(b"x" * size)

        def after(result: BytesResult, source: Path = source) -> BytesResult:
            source.write_bytes(b"y")
            return result

        transport.after = after
        with pytest.raises(TransferError, match="source has changed while it was read") as raised:
            remote_files.get(str(source), str(tmp_path / f"target{size}"))
        assert raised.value.transient
        assert not (tmp_path / f"target{size}").exists()


def _limited(command: Command, data: bytes) -> tuple[Command, bytes]:
    """Run a command under a file size limit."""
    text = 'trap "" XFSZ; ulimit -f 1000; exec "$@"'
    argv = ["/bin/sh", "-c", text, "sh", *command.argv]
    return Command(argv, timeout=command.timeout, environment=command.environment), data


def test_a_full_disk_is_named_as_the_cause(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(5_000_000))
    transport.before = _limited

    with pytest.raises(TransferError, match=r"target.* cannot be written: File too large"):
        remote_files.put(str(source), str(tmp_path / "target"))

    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("size", [100, 5_000_000])
def test_a_full_disk_is_a_transient_error_and_leaves_no_half_file(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path, size: int
) -> None:
    source, programs = tmp_path / "source", tmp_path / "bin"
    source.write_bytes(os.urandom(size))
    programs.mkdir()
    for name in ("cat", "dd"):
        program = programs / name
        program.write_text("#!/bin/sh\nhead -c 50; head -c 1 /dev/zero >/dev/full || exit\n")
        program.chmod(0o755)

    def before(command: Command, data: bytes) -> tuple[Command, bytes]:
        environment = {**command.environment, "PATH": f"{programs}:{os.environ['PATH']}"}
        return Command(command.argv, timeout=command.timeout, environment=environment), data

    transport.before = before
    with pytest.raises(TransferError, match=r"target.* cannot be written: No space left on device") as raised:
        remote_files.put(str(source), str(tmp_path / "target"))
    assert raised.value.transient
    assert isinstance(raised.value.exception, OSError)
    assert raised.value.exception.errno == errno.ENOSPC
    assert not (tmp_path / "target").exists()

    transport.before = lambda command, data: (command, data)
    remote_files.put(str(source), str(tmp_path / "target"))
    assert (tmp_path / "target").read_bytes() == source.read_bytes()


def test_a_host_without_sha256sum_suffices(
    transport: RemoteHostTransport, remote_files: JobFiles, tmp_path: Path
) -> None:
    source, programs = tmp_path / "source", tmp_path / "bin"
    source.write_bytes(os.urandom(3_000_000))
    programs.mkdir()
    for name in "sh cat dd find ls id wc cksum mkdir rm mv chmod head tail env".split():  # noqa: SIM905  as read
        found = next(path for it in os.environ["PATH"].split(":") if (path := Path(it) / name).exists())
        (programs / name).symlink_to(found)

    def before(command: Command, data: bytes) -> tuple[Command, bytes]:
        environment = {**command.environment, "PATH": str(programs)}
        return Command(command.argv, timeout=command.timeout, environment=environment), data

    transport.before = before
    remote_files.put(str(source), str(tmp_path / "there"))
    remote_files.get(str(tmp_path / "there"), str(tmp_path / "back"))

    assert (tmp_path / "back").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox", "ksh", "mksh"])
def test_any_posix_shell_suffices(
    transport: RemoteHostTransport, remote_files: JobFiles, tree: Path, tmp_path: Path, shell: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")

    def before(command: Command, data: bytes) -> tuple[Command, bytes]:
        argv = [shell, *(["sh"] if shell == "busybox" else []), *command.argv[1:]]
        return Command(argv, timeout=command.timeout, environment=command.environment), data

    transport.before = before
    remote_files.put(str(tree), str(tmp_path / "there"))
    remote_files.get(str(tmp_path / "there"), str(tmp_path / "back"))

    assert _contents(tmp_path / "back") == _contents(tree)
    assert remote_files.read(str(tree / "program"), 2, 3) == OutputPart(b"/bi", 2, 10)


# ------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("offset", "most", "part"),
    [
        (0, 100, OutputPart(b"0123456789", 0, 10)),
        (0, 3, OutputPart(b"012", 0, 10)),
        (7, 100, OutputPart(b"789", 7, 10)),
        (10, 100, OutputPart(b"", 10, 10)),
        (11, 100, OutputPart(b"0123456789", 0, 10)),
        (-4, 100, OutputPart(b"6789", 6, 10)),
        (-40, 2, OutputPart(b"01", 0, 10)),
    ],
)
def test_read_returns_the_content_from_an_offset(
    files: JobFiles, tmp_path: Path, offset: int, most: int, part: OutputPart
) -> None:
    (tmp_path / "out").write_bytes(b"0123456789")

    assert files.read(str(tmp_path / "out"), offset, most) == part


def test_read_returns_bytes_that_are_no_text_unchanged(files: JobFiles, tmp_path: Path) -> None:
    data = b"\n0 0\n" + bytes(range(256))
    (tmp_path / "o u't").write_bytes(data)

    assert files.read(str(tmp_path / "o u't"), 0, 1000) == OutputPart(data, 0, len(data))


def test_read_of_a_missing_file_returns_none(files: JobFiles, tmp_path: Path) -> None:
    assert files.read(str(tmp_path / "out"), 0, 10) is None
    assert files.read(str(tmp_path / "directory" / "out"), 0, 10) is None


def test_a_special_file_counts_as_empty(files: JobFiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path in ("/dev/null", str(tmp_path / "pipe")):
        assert files.read(path, 0, 10) == OutputPart(b"", 0, 0)


def test_a_directory_cannot_be_read(files: JobFiles, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="cannot be read: Is a directory"):
        files.read(str(tmp_path), 0, 10)
