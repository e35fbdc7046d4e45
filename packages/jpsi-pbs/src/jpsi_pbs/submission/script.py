"""What a job asks for: the `#PBS` lines for a spec, and what in a spec no such line can say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import attrs

from jpsi.plugin import JobSpec, Options, SubmitContext, attributes, time_limit
from jpsi.plugin.kit import ScriptForm

from ..job_names import legal_name, tag_variables
from ..native_ids import is_element
from ..options import CUSTOM

_SECOND = timedelta(seconds=1)
_YES_OR_NO = {None: None, True: "y", False: "n"}


def script_form(
    systems: tuple[str, ...], refused: Mapping[str, str], indirect: tuple[str, ...] = ()
) -> ScriptForm:
    """The form of scripts of one system.

    Args:
        systems: how its custom attributes begin.
        refused: those that are refused there and nowhere else.
        indirect: those that are there besides the options of qsub.
    """
    custom = attrs.evolve(
        CUSTOM,
        systems=systems,
        name="|".join([CUSTOM.name.pattern, *indirect]),
        refused={**CUSTOM.refused, **refused},
        indirect=indirect,
    )
    return ScriptForm(mark="#PBS", dashes="-", joint=" ", custom=custom, spelled=spelled)


def spelled(option: str, value: str | None) -> tuple[str, str | None]:
    """Options as qsub takes them: `l.walltime` with the value 60 is `l` with the value `walltime=60`."""
    letter, _, name = option.partition(".")
    return letter, f"{name}={value or ''}" if name else value


def qsub_options(spec: JobSpec, context: SubmitContext, queue: str | None, needs: Options) -> Options:
    """The options of qsub; qsub(1B), OPTIONS.

    Args:
        spec: what the job asks for.
        context: with what it is submitted.
        queue: where it is sent.
        needs: the options for what it needs of the machine, and for an array.
    """
    config = context.site.config
    return {
        "N": legal_name(spec.name),
        "v": tag_variables(context.tag, spec.name),
        # Values with commas, quotes or backslashes do not all arrive when they stand in -v.
        "V": True,
        # Otherwise the login shell reads the script, which may be any.
        "S": "/bin/sh",
        # The runner opens the job's streams. A file that PBS cannot copy to its place keeps the job from
        # ending for half a minute, and one that it cannot open holds it.
        "o": "/dev/null",
        "e": "/dev/null",
        "m": "n",
        "q": queue,
        "A": attributes(spec).project_name,
        "l.walltime": time_limit(spec, config, _SECOND),
        "W.umask": config.umask,
        "r": _YES_OR_NO[config.rerun],
        **needs,
        "W.depend": _depend(context) or None,
    }


def _depend(context: SubmitContext) -> str:
    """What tells of the jobs to wait for; all of them must be satisfied.

    Raises:
        ValueError: one of them is an element of an array.
    """
    found: dict[str, list[str]] = {}
    for dependency in context.after:
        if is_element(dependency.native_id or ""):
            msg = (
                f"attributes.after: {dependency.native_id} is an element of an array, and jobs wait for jobs "
                "or whole arrays alone; submit it by itself, or with `array_size` 1 in the configuration"
            )
            raise ValueError(msg)
        found.setdefault(f"after{dependency.kind.value}", []).append(dependency.native_id or "")
    # each kind once: a second list of one kind replaces the first
    return ",".join(":".join([word, *native_ids]) for word, native_ids in found.items())
