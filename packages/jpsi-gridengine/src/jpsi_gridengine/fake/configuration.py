"""`qconf` of the fake of Grid Engine, with limits and two queues."""

from __future__ import annotations

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeScheduler, Invocation

from .arrays import MAX_AJ_TASKS

# The queues, with their run time limits
_QUEUES = {"debug.q": "01:00:00", "main.q": "INFINITY"}
_LIMITS = {"max_aj_instances": 2000, "max_aj_tasks": MAX_AJ_TASKS, "max_u_jobs": 0, "max_jobs": 0}


def qconf(_scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Print the configuration, the names of the queues, or the configuration of a queue."""
    match invocation.arguments:
        case ("-sconf", *_):
            lines = ["#global:\n", *(f"{name:<28} {value}\n" for name, value in _LIMITS.items())]
            return CommandResult(returncode=0, stdout="".join(lines))
        case ("-sql",):
            return CommandResult(returncode=0, stdout="".join(f"{name}\n" for name in _QUEUES))
        case ("-sq", name) if name in _QUEUES:
            settings = {"qname": name, "qtype": "BATCH", "pe_list": "make smp", "h_rt": _QUEUES[name]}
            lines = [f"{key:<21} {value}\n" for key, value in settings.items()]
            return CommandResult(returncode=0, stdout="".join(lines))
        case _:
            return CommandResult(
                returncode=1, stderr="error: this fake qconf knows -sconf, -sql and -sq alone\n"
            )
