"""Checks the bsub options that users set directly.

Users set them as custom attributes `lsf.<option>`. Options that would break what jpsi guarantees are refused;
`directives` writes the others into the script.
"""

from __future__ import annotations

import attrs

from jpsi.plugin import CustomOptions, HeterogeneousResources, JobSpec

_WAITS = "bsub would not return before the job has ended"

#: bsub of LSF 10.1, options such as -J, -gpu, -alloc_flags; their names are case-sensitive.
CUSTOM = CustomOptions(
    systems=("lsf",),
    name=r"[A-Za-z][A-Za-z_]*",
    example="app",
    refused={
        "E": "a job whose pre-exec command fails is tried again for ever; use pre_launch",
        "H": "hold the job after it was submitted",
        "J": "set JobSpec.name; `submit_many` makes arrays",
        "K": f"{_WAITS}; use Job.wait",
        "L": "the job would not get jpsi's environment; set `shell` in the executor's configuration",
        "Q": "set `requeue_exit_codes` in the executor's configuration, and the queue's or profile's own",
        "Zs": "the script that LSF gets is one line",
        "cwd": "set JobSpec.directory",
        "env": "set JobSpec.environment and inherit_environment",
        "f": "set JobSpec.stage_in and stage_out",
        "pack": "jpsi submits one job at a time",
        **dict.fromkeys(("I", "IS", "ISp", "ISs", "IX", "Ip", "Is"), _WAITS),
        **dict.fromkeys(("B", "N", "Ne", "u"), "set JobAttributes.mail"),
        **dict.fromkeys(("V", "h"), "it submits nothing"),
        **dict.fromkeys(("e", "eo"), "set JobSpec.stderr_path"),
        **dict.fromkeys(("i", "is"), "set JobSpec.stdin_path"),
        **dict.fromkeys(("json", "jsdl", "jsdl_strict", "yaml"), "jpsi submits a script"),
        **dict.fromkeys(("o", "oo", "outdir"), "set JobSpec.stdout_path"),
    },
    excludes={"nnodes": ("n", "R"), "r": ("rn",), "rn": ("r",)},
    # The tag stays the last word of the description: jpsi finds the job by it. Requirements add up.
    joined={"Jd", "R"},
    dependency="w",
)

_ONE_KIND = "it is for slots of one kind"
#: The options for jobs with several components, each of which gets the requirements of -R.
COMPONENT_OPTIONS = attrs.evolve(
    CUSTOM,
    refused={
        **CUSTOM.refused,
        "gpu": f"{_ONE_KIND}; set gpu_cores_per_process of each",
        "n": f"{_ONE_KIND}; set process_count of each",
        "nnodes": f"{_ONE_KIND}; set node_count of each",
    },
    joined=set(CUSTOM.joined) - {"R"},
    indirect={"R"},
)


def component_requirements(spec: JobSpec) -> str | None:
    """Return the user's requirements (`lsf.R`) for each of several components; None if there are none.

    Raises:
        ValueError: the requirements contain compound terms or alternatives themselves.
    """
    if not isinstance(spec.resources, HeterogeneousResources):
        return None
    value = CUSTOM.of(spec).get("R")
    if value is None or isinstance(value, bool):
        return None
    if "{" in str(value):
        raise ValueError(
            "custom attribute lsf.R cannot have kinds of slots or alternatives, in braces, beside "
            "resources.components: its requirements apply to each of these"
        )
    return str(value)
