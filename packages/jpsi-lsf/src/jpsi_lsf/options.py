"""The custom attributes `lsf.<option>`: which options of bsub a user may set past jpsi, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jpsi.plugin import JobSpec, custom_options, custom_problems, option_text

#: Options of bsub without their dashes, with their values; None is an option without a value.
Options = Mapping[str, str | None]

_SYSTEM = "lsf"
# bsub of LSF 10.1, options: -J, -gpu, -alloc_flags; capital and small letters differ
_NAME = re.compile(r"[A-Za-z][A-Za-z_]*\Z")

# The same list, those that would break what jpsi promises, with what to do instead
_REFUSED = {
    "B": "it sends mail that jpsi cannot turn off",
    "E": "a job whose pre-exec command fails is tried again for ever; use pre_launch",
    "H": "hold the job after it was submitted",
    "I": "bsub would not return before the job has ended",
    "IS": "bsub would not return before the job has ended",
    "ISp": "bsub would not return before the job has ended",
    "ISs": "bsub would not return before the job has ended",
    "IX": "bsub would not return before the job has ended",
    "Ip": "bsub would not return before the job has ended",
    "Is": "bsub would not return before the job has ended",
    "J": "set JobSpec.name; an array is several jobs",
    "K": "bsub would not return before the job has ended; use Job.wait",
    "L": "the job would not get jpsi's environment; set `shell` in the executor's configuration",
    "N": "it sends mail",
    "Ne": "it sends mail",
    "Q": "set `requeue_exit_codes` in the executor's configuration, and the queue's or profile's own",
    "V": "it submits nothing",
    "Zs": "the script that LSF gets is one line",
    "cwd": "set JobSpec.directory",
    "e": "set JobSpec.stderr_path",
    "env": "set JobSpec.environment and inherit_environment",
    "eo": "set JobSpec.stderr_path",
    "f": "set JobSpec.stage_in and stage_out",
    "h": "it submits nothing",
    "i": "set JobSpec.stdin_path",
    "is": "set JobSpec.stdin_path",
    "json": "jpsi submits a script",
    "jsdl": "jpsi submits a script",
    "jsdl_strict": "jpsi submits a script",
    "o": "set JobSpec.stdout_path",
    "oo": "set JobSpec.stdout_path",
    "outdir": "set JobSpec.stdout_path",
    "pack": "jpsi submits one job at a time",
    "u": "it is for mail",
    "yaml": "jpsi submits a script",
}
# What an option that a custom attribute sets contradicts, of those that jpsi sets itself
_EXCLUDES = {"nnodes": ("n", "R"), "r": ("rn",), "rn": ("r",)}


def with_custom(options: Options, spec: JobSpec) -> dict[str, str | None]:
    """The options with what the custom attributes of a sound spec add, replace and take away."""
    merged = dict(options)
    for name, value in custom_options(spec, _SYSTEM).items():
        if name in {"Jd", "R"}:
            # The last word of a description stays the tag, by which the job is found; requirements add up.
            merged[name] = " ".join(text for text in (option_text(value), options.get(name)) if text) or None
            if merged[name] is None:
                del merged[name]
            continue
        merged.pop(name, None)
        if value is None or value is False:
            continue
        for other in _EXCLUDES.get(name, ()):
            merged.pop(other, None)
        merged[name] = option_text(value)
    return merged


def option_problems(spec: JobSpec) -> Iterator[str]:
    """What is wrong with the custom attributes for LSF, one sentence each."""
    yield from custom_problems(spec, _SYSTEM, _NAME, "app", _REFUSED)
