"""Finds out if a job is that of a workflow or a request, which take no notice of what repeats it.

Their packages set the variables by which it is recognised. In place of the options of `jpsi submit`, advice
names what is in their documents.
"""

from __future__ import annotations

import re
from enum import Enum

from jpsi_engine.job_store import StoredJob


class Owner(Enum):
    """The kind of document that a job was submitted for; its value is the command that runs that again."""

    WORKFLOW = "jpsi workflow run --failed FILE"
    REQUEST = "jpsi request run FILE"

    @property
    def noun(self) -> str:
        """The word for it."""
        return self.name.lower()


# The variables that all jobs of a workflow, or of a request, have in their specs.
_VARIABLES = {Owner.WORKFLOW: {"JPSI_TASK", "JPSI_REPLICAS"}, Owner.REQUEST: {"JPSI_EXECUTION"}}


def find_owner(job: StoredJob) -> Owner | None:
    """Return the kind of document that a job was submitted for; None for a job of its own.

    What repeats the job of a workflow or a request is a job of its own, though it has the variables.
    """
    if job.repeats is not None:
        return None
    variables = (job.spec.environment or {}).keys()
    return next((owner for owner, needed in _VARIABLES.items() if needed <= variables), None)


def name_settings(owner: Owner | None, advice: str) -> str:
    """Return advice with what the document of a job has in place of options of `jpsi submit`.

    >>> name_settings(Owner.REQUEST, "ask for more, with --memory")
    'ask for more, with the memory in the document of its request'
    >>> name_settings(None, "ask for more, with --memory")
    'ask for more, with --memory'

    Args:
        owner: the kind of that document; None for a job of its own.
        advice: without words of the user, as these may be options of other programs.
    """
    if owner is None:
        return advice
    settings = _SETTINGS | _OWN_SETTINGS[owner]
    return _SETTING.sub(lambda it: settings[it[0]].format(owner.noun), advice)


# What is in both kinds of documents.
_FIELDS = {
    "--time, --nodes, --processes or --memory": "time, nodes, processes or memory",
    "--cores": "the cores",
    "--memory": "the memory",
    "--nodes": "the nodes",
    "--project": "the `project_name`",
    "--queue": "the `queue_name`",
    "--reservation": "the `reservation_id`",
    "--time": "the `duration`",
    "--warn": "the `warn`",
}
_SETTINGS = {
    **{option: f"{field} in the document of its {{}}" for option, field in _FIELDS.items()},
    "--dir": "the `cwd` of its {}",
    "--pre-launch": "its command",
    # not all of them have these
    "the launcher, --launcher,": "the launcher,",
    "; --after any:ID waits for any end": "",
    ", or submit the job with --create-dir": "",
}
_MODULES = "let jpsi load modules, with --setup module:NAME"
_OWN_SETTINGS = {
    Owner.WORKFLOW: {_MODULES: "let jpsi load modules, by the `environment_setup` in the document of its {}"},
    Owner.REQUEST: {_MODULES: "have its command make it known, or name a `container_image`"},
}
_SETTING = re.compile("|".join(map(re.escape, (*_SETTINGS, _MODULES))))
