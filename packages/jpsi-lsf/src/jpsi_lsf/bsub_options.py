"""Names the bsub options that are attributes of a job, and checks those that users set directly."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from jpsi.plugin import CustomOptions, HeterogeneousResources, JobSpec

#: Options whose value is one of the job's attributes, with the attribute's name.
ATTRIBUTE_OPTIONS: Mapping[str, str] = {"q": "queue_name", "P": "project_name", "U": "reservation_id"}

#: bsub of LSF 10.1, options such as -J, -gpu, -alloc_flags; their names are case-sensitive.
CUSTOM = CustomOptions(
    systems=("lsf",),
    name=r"[A-Za-z][A-Za-z_]*",
    example="app",
    refused={
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
        "J": "set JobSpec.name; `submit_many` makes arrays",
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
        msg = (
            "custom attribute lsf.R cannot have kinds of slots or alternatives, in braces, beside "
            "resources.components: its requirements apply to each of these"
        )
        raise ValueError(msg)
    return str(value)
