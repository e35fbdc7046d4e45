"""Reading `qstat -f -x` of Torque, whose text is no XML once a value holds a control character."""

from __future__ import annotations

import html
import re

from jpsi.plugin import SubmitException

from .listed import Listed

# Torque writes what has a meaning in XML as entities, so that no value can look like an element.
_JOB = re.compile(r"<Job><Job_Id>([^<]*)</Job_Id>(.*?)</Job>", re.DOTALL)
_GROUP = re.compile(r"<(Resource_List|resources_used)>.*?</\1>", re.DOTALL)
_ATTRIBUTE = re.compile(r"<(\w+)>([^<]*)</\1>")
_TEXT = re.compile(r"^Job Id: \d", re.MULTILINE)
# What Torque calls otherwise
_NAMES = {
    "comp_time": "obittime",
    "exit_status": "Exit_status",
    "job_array_id": "array_index",
    "start_count": "run_count",
    "start_time": "stime",
}


def jobs(output: str) -> list[Listed] | None:
    """The jobs in an answer; None if it is not whole.

    Raises:
        SubmitException: it is the text that another qstat prints for the same options.
    """
    if output.strip() and "</Data>" not in output:
        if _TEXT.search(output):
            msg = "this qstat is not Torque's but that of PBS: use the executor pbs"
            raise SubmitException(msg)
        return None
    return [_job(native_id, content) for native_id, content in _JOB.findall(output)]


def _job(native_id: str, content: str) -> Listed:
    found = _ATTRIBUTE.findall(_GROUP.sub("", content))
    attributes = {_NAMES.get(name, name): html.unescape(value) for name, value in found}
    return Listed(native_id, attributes, attributes.get("Variable_List", ""))
