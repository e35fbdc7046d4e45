"""The requests in a submit script that was written for a batch system and not for jpsi."""

from __future__ import annotations

import attrs

from jpsi.model import JobSpec


@attrs.frozen(slots=True, kw_only=True)
class ForeignScript:
    """The job that the directives of a script ask for."""

    #: The job without arguments. Its executable is the shell that the directives name, and its directory the
    #: one where the job runs, relative to the directory of the submission; None if they do not name one.
    spec: JobSpec
    #: The number of directives; a script without any was not written for this batch system.
    directives: int
    #: The requests that the spec does not express, or expresses differently, one sentence each.
    lost: tuple[str, ...] = ()
    #: True if relative paths of streams are relative to the directory of the submission, wherever the job
    #: runs.
    is_output_here: bool = False
