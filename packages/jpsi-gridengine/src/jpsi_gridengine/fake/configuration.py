"""`qconf` of the fake of Grid Engine, with limits and two queues.

Tests and `jpsi fake` run jobs on the fake, without a real Grid Engine.
"""

from __future__ import annotations

from jpsi_testing.fake import CommandError, FakeScheduler, Invocation, join_lines

from .arrays import MAX_AJ_TASKS

# The queues, with their run time limits
_QUEUES = {"debug.q": "01:00:00", "main.q": "INFINITY"}
_LIMITS = {"max_aj_instances": 2000, "max_aj_tasks": MAX_AJ_TASKS, "max_u_jobs": 0, "max_jobs": 0}


def qconf(_scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print the configuration, the names of the queues, or the configuration of a queue."""
    match invocation.arguments:
        case ("-sconf", *_):
            return join_lines(["#global:", *(f"{name:<28} {value}" for name, value in _LIMITS.items())])
        case ("-sql",):
            return join_lines(_QUEUES)
        case ("-sq", name) if name in _QUEUES:
            settings = {"qname": name, "qtype": "BATCH", "pe_list": "make smp", "h_rt": _QUEUES[name]}
            return join_lines(f"{key:<21} {value}" for key, value in settings.items())
        case _:
            raise CommandError(1, "error: this fake qconf knows -sconf, -sql and -sq alone\n")
