"""Renders a job spec into `#PBS` lines, and defines which options they can express."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import attrs

from jpsi.plugin import JobSpec, Options, SubmitContext, attributes, time_limit
from jpsi.plugin.kit import ScriptForm

from ..job_names import legal_name, tag_variables
from ..native_ids import is_element
from ..qsub_options import CUSTOM

_SECOND = timedelta(seconds=1)
_YES_OR_NO = {None: None, True: "y", False: "n"}


def script_form(
    systems: tuple[str, ...], refused: Mapping[str, str], indirect: tuple[str, ...] = ()
) -> ScriptForm:
    """Return the form of the scripts of one batch system.

    Args:
        systems: the prefixes of its custom attributes.
        refused: custom attributes that only this system refuses.
        indirect: custom attributes that are no options of qsub.
    """
    custom = attrs.evolve(
        CUSTOM,
        systems=systems,
        name="|".join([CUSTOM.name.pattern, *indirect]),
        refused={**CUSTOM.refused, **refused},
        indirect=indirect,
    )
    return ScriptForm(mark="#PBS", dashes="-", joint=" ", custom=custom, spelled=split_option)


def split_option(option: str, value: str | None) -> tuple[str, str | None]:
    """Return an option in qsub's notation: `l.walltime` with value 60 is `l` with value `walltime=60`."""
    letter, _, name = option.partition(".")
    return letter, f"{name}={value or ''}" if name else value


def qsub_options(
    spec: JobSpec, context: SubmitContext, queue: str | None, resource_options: Options
) -> Options:
    """Return the qsub options for a job; qsub(1B), OPTIONS.

    Args:
        spec: the job's spec.
        context: the context of the submission, such as the tag and the site.
        queue: the queue; None is the default queue.
        resource_options: the options for the job's resources and for an array.
    """
    config = context.site.config
    return {
        "N": legal_name(spec.name),
        "v": tag_variables(context.tag, spec.name),
        # -v does not preserve all values with commas, quotes or backslashes.
        "V": True,
        # Otherwise the user's login shell runs the script, which may be any shell.
        "S": "/bin/sh",
        # The runner opens the job's streams. A file that PBS cannot copy delays the job's end for half a
        # minute, and a file that it cannot open holds the job.
        "o": "/dev/null",
        "e": "/dev/null",
        "m": "n",
        "q": queue,
        "A": attributes(spec).project_name,
        "l.walltime": time_limit(spec, config, _SECOND),
        "W.umask": config.umask,
        "r": _YES_OR_NO[config.rerun],
        **resource_options,
        "W.depend": _dependency_option(context) or None,
    }


def _dependency_option(context: SubmitContext) -> str:
    """Return the value of `depend`; all dependencies must be satisfied.

    Raises:
        ValueError: a dependency is on an array element.
    """
    dependencies: dict[str, list[str]] = {}
    for dependency in context.after:
        if is_element(dependency.native_id or ""):
            msg = (
                f"attributes.after: {dependency.native_id} is an element of an array, and jobs wait for jobs "
                "or whole arrays alone; submit it by itself, or with `array_size` 1 in the configuration"
            )
            raise ValueError(msg)
        dependencies.setdefault(f"after{dependency.kind.value}", []).append(dependency.native_id or "")
    # each kind appears once, as a second list of one kind replaces the first
    return ",".join(":".join([word, *native_ids]) for word, native_ids in dependencies.items())
