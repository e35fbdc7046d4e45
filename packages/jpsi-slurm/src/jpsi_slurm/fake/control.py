"""`scancel` and `scontrol` of the fake of Slurm."""

from __future__ import annotations

from collections.abc import Callable

from jpsi.plugin import CommandResult
from jpsi.plugin.kit import expand_hostlist
from jpsi_testing.fake import FakeScheduler, Invocation

from ..native_ids import expand_ids
from .arguments import UnknownOptionError, parse
from .arrays import MAX_ARRAY_SIZE, assign_number, find_jobs
from .submit import CLUSTER

_SCANCEL = {"clusters": True, "quiet": False}
_SCANCEL_SHORT = {"M": "clusters", "Q": "quiet"}
_SCONTROL = {"all": False, "clusters": True, "oneliner": False, "version": False}
_SCONTROL_SHORT = {"M": "clusters", "a": "all", "o": "oneliner", "V": "version"}
_VERSION = "22.05.8"
# From Slurm 22.05, without fields that jpsi does not read
_PARTITIONS = """\
PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A \
DefaultTime=01:00:00 MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 Nodes=node[01-02] State=UP TotalCPUs=16 \
TotalNodes=2 DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=16,mem=16000M,node=2,billing=16
PartitionName=debug AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO QoS=N/A \
DefaultTime=00:10:00 MaxNodes=UNLIMITED MaxTime=01:00:00 MinNodes=0 Nodes=node[01-02] State=UP TotalCPUs=16 \
TotalNodes=2 DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=16,mem=16000M,node=2,billing=16
"""
_DENIED = 210


def scancel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs; silently skip ended and unknown ones."""
    try:
        ids = parse(invocation.arguments, _SCANCEL, _SCANCEL_SHORT).words
    except UnknownOptionError as e:
        return CommandResult(returncode=1, stderr=f"scancel: unrecognized option '{e}'\n")
    if not ids:
        return CommandResult(returncode=1, stderr="scancel: error: No job identification provided\n")
    for native_id in ids:
        if not any(expand_ids(native_id)):
            return CommandResult(returncode=1, stderr=f"scancel: error: Invalid job id {native_id}\n")
    errors: list[str] = []
    ended: list[str] = []
    # scancel also reaches jobs that squeue does not list yet.
    for native_id, jobs in find_jobs(ids, scheduler.jobs).items():
        if not all(job.is_own for job in jobs):
            error = f"Kill job error on job id {native_id}: Access/permission denied"
            errors.append(f"scancel: error: {error}\n")
            continue
        ended += [job.native_id for job in jobs]
    scheduler.cancel_all(ended)
    return CommandResult(returncode=_DENIED if errors else 0, stderr="".join(errors))


def scontrol(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Show the configuration, partitions or names of nodes, or hold, release or requeue jobs."""
    options, words = parse(invocation.arguments, _SCONTROL, _SCONTROL_SHORT)
    if "version" in options:
        return CommandResult(returncode=0, stdout=f"slurm-wlm {_VERSION}\n")
    if words == ("show", "partition"):
        return CommandResult(returncode=0, stdout=_PARTITIONS)
    if words == ("show", "config"):
        return CommandResult(returncode=0, stdout=_configuration(scheduler))
    if words[:2] == ("show", "hostnames"):
        nodes = expand_hostlist(
            words[2] if words[2:] else invocation.environment.get("SLURM_JOB_NODELIST", "")
        )
        return CommandResult(returncode=0 if nodes else 1, stdout="".join(f"{node}\n" for node in nodes))
    verb = words[0] if words else ""
    if verb not in _VERBS:
        return CommandResult(returncode=1, stderr=f"invalid keyword: {verb}\n")
    errors = [_change_job(scheduler, verb, native_id) for native_id in words[1:]]
    return CommandResult(returncode=1 if any(errors) else 0, stderr="".join(errors))


_VERBS: dict[str, Callable[[FakeScheduler, str], object]] = {
    "hold": FakeScheduler.hold,
    "release": FakeScheduler.release,
    "requeue": FakeScheduler.requeue,
}


def _change_job(scheduler: FakeScheduler, verb: str, native_id: str) -> str:
    """Apply the change to one job; return the error messages."""
    job = next(iter(find_jobs([native_id], scheduler.listed())[native_id]), None)
    if job is None:
        error = "Invalid job id specified"
    elif job.state.final and verb != "requeue":
        error = "Job has already finished"
    else:
        assign_number(scheduler, job)
        _VERBS[verb](scheduler, job.native_id)
        return ""
    return f"{error} for job {native_id}\nslurm_suspend error: {error}\n"


def _configuration(scheduler: FakeScheduler) -> str:
    storage = "accounting_storage/slurmdbd" if scheduler.accounting else "accounting_storage/none"
    settings = {
        "AccountingStorageType": storage,
        "ClusterName": CLUSTER,
        "EnforcePartLimits": "NO",
        "JobRequeue": "1",
        "MaxArraySize": str(MAX_ARRAY_SIZE),
        "MinJobAge": f"{int(scheduler.keep)} sec",
        "RequeueExit": "(null)",
        "RequeueExitHold": "(null)",
        "SLURM_VERSION": _VERSION,
    }
    lines = [f"{name:<23} = {value}" for name, value in settings.items()]
    heading = "Configuration data as of 2026-11-21T08:14:03"
    return "\n".join([heading, *lines, "", "Slurmctld(primary) at login01 is UP", ""])
