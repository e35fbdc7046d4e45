"""What is to be staged for a job, as a plan of steps: pure, whoever carries them out.

Where the job's files are files of this machine, or of a file system that it shares, the runner does it on the
node of the job. Where they are elsewhere, the program that submits brings and fetches them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs

from jpsi.model.spec import JobSpec, StageIn, StageOut, StageOutFlags, StagingMode

#: Phases of staging: what stands in the exit marker, and in a status.
STAGE_IN, STAGE_OUT, CLEANUP = "stage_in", "stage_out", "cleanup"
#: What stands between the phase in which a job ended and what failed after that, in the exit marker.
ALSO = "-"

# RFC 3986 3.1: what begins like this is no path that anybody means.
_URL = re.compile(r"(file):|([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


class Outcome(enum.Enum):
    """How a job ended, as far as staging depends on it."""

    SUCCESS = "success"
    ERROR = "error"
    CANCEL = "cancel"


_FLAGS = {
    Outcome.SUCCESS: StageOutFlags.ON_SUCCESS,
    Outcome.ERROR: StageOutFlags.ON_ERROR,
    Outcome.CANCEL: StageOutFlags.ON_CANCEL,
}


@attrs.frozen(slots=True, kw_only=True)
class Transfer:
    """One file or directory that is brought from one place to another.

    The path on the side of the job is absolute, begins with `~/`, or is relative to the job's directory; the
    other one is absolute.
    """

    mode: StagingMode
    source: str
    target: str
    #: Whether a source that is not there is no failure.
    is_optional: bool = False
    #: After which ends of the job it is done; of no meaning before the job.
    outcomes: tuple[Outcome, ...] = tuple(Outcome)


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """Everything that is staged for one job, in the order in which it is done.

    A transfer of `stage_in` that fails ends the job, and nothing after it is done. Of `stage_out` each is
    tried, whatever becomes of the others. Nothing is removed if one of these failed.
    """

    stage_in: tuple[Transfer, ...] = ()
    stage_out: tuple[Transfer, ...] = ()
    #: Paths on the side of the job, in its directory.
    cleanup: tuple[str, ...] = ()
    #: After which ends of the job they are removed.
    cleanup_outcomes: tuple[Outcome, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.stage_in or self.stage_out or self.cleanup)


_NOTHING = Plan()


def has_staging(spec: JobSpec) -> bool:
    """Whether anything is to be staged or cleaned up."""
    return bool(spec.stage_in or spec.stage_out or spec.cleanup)


def plan(spec: JobSpec) -> Plan:
    """What is to be done for a spec that `settled` has made."""
    if not has_staging(spec):
        return _NOTHING
    return Plan(
        stage_in=tuple(map(_in, spec.stage_in or ())),
        stage_out=tuple(map(_out, spec.stage_out or ())),
        cleanup=tuple(map(str, spec.cleanup or ())),
        cleanup_outcomes=outcomes(spec.cleanup_flags),
    )


def _in(item: StageIn) -> Transfer:
    return Transfer(mode=item.mode, source=item.source, target=str(item.target))


def _out(item: StageOut) -> Transfer:
    return Transfer(
        mode=item.mode,
        source=str(item.source),
        target=item.target,
        is_optional=StageOutFlags.IF_PRESENT in item.flags,
        outcomes=outcomes(item.flags),
    )


def outcomes(flags: StageOutFlags) -> tuple[Outcome, ...]:
    """The ends of a job after which something with these flags is done.

    >>> outcomes(StageOutFlags.IF_PRESENT)
    (<Outcome.SUCCESS: 'success'>,)
    """
    if not flags & StageOutFlags.ALWAYS:
        flags |= StageOutFlags.ON_SUCCESS
    return tuple(outcome for outcome, flag in _FLAGS.items() if flag in flags)


def settled(spec: JobSpec, here: str, home: str) -> JobSpec:
    """A spec without problems in which places on the submitting side are absolute paths.

    Args:
        spec: a copy that nobody else has.
        here: what relative paths are relative to.
        home: the directory that `~/` is.
    """
    stage_in = [attrs.evolve(item, source=_at(item.source, here, home)) for item in spec.stage_in or ()]
    stage_out = [
        attrs.evolve(item, target=_target(_at(item.target, here, home), item.source))
        for item in spec.stage_out or ()
    ]
    return attrs.evolve(spec, stage_in=stage_in or spec.stage_in, stage_out=stage_out or spec.stage_out)


def _at(text: str, here: str, home: str) -> str:
    path = path_of(text)
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return path if path.startswith("/") else f"{here.rstrip('/')}/{path}"


def _target(path: str, source: Path) -> str:
    # as cp(1) has it, a slash at the end says that it is a directory
    return path + source.name if path.endswith("/") else path


def path_of(text: str) -> str:
    """The path that a path or `file:` URL on the submitting side means.

    >>> path_of("file:///data/a%20b"), path_of("a:b/c")
    ('/data/a b', 'a:b/c')

    Raises:
        ValueError: it is something else.
    """
    found = _URL.match(text)
    if found is None:
        return text
    if found[1] is None:
        msg = f"{text!r}: {found[2]}: is not offered; it can be a path or a file: URL of this machine"
        raise ValueError(msg)
    parts = urlsplit(text)
    if parts.netloc.lower() not in {"", "localhost"}:
        msg = f"{text!r} is on the machine {parts.netloc}; it can be a path or a file: URL of this machine"
        raise ValueError(msg)
    if parts.query or parts.fragment:
        msg = f"{text!r} has a ? or #, which are %3F and %23 in the name of a file"
        raise ValueError(msg)
    path = unquote(parts.path, errors="surrogateescape")
    if not path.startswith("/") or "\0" in path:
        msg = f"{text!r} is no absolute path, as a file: URL has"
        raise ValueError(msg)
    return path


def problems(spec: JobSpec, here: str | None) -> Iterator[str]:
    """What is wrong with what a valid spec has staged, one sentence each.

    Args:
        spec: as `settled` needs it.
        here: the directory of a job that names none; None where that is not known, and the job itself tells
            whether an absolute path is below it.
    """
    places = [(f"stage_in[{index}].source", item.source) for index, item in enumerate(spec.stage_in or ())]
    places += [(f"stage_out[{index}].target", item.target) for index, item in enumerate(spec.stage_out or ())]
    for where, text in places:
        try:
            path_of(text)
        except ValueError as e:
            yield f"{where}: {e}"
    directory = Path(here) if spec.directory is None and here is not None else spec.directory
    for index, path in enumerate(spec.cleanup or ()):
        is_rooted = path.is_absolute() or path.parts[:1] == ("~",)
        is_below = len(path.parts) > (1 if is_rooted else 0)
        if is_rooted and directory is not None:
            is_below = directory in path.parents
        if not is_below or ".." in path.parts:
            yield f"cleanup[{index}]: {str(path)!r} is not below the job's directory"
