"""`scancel`, `scontrol` and `sinfo` of the fake of Slurm.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

from collections.abc import Callable

from jpsi.plugin import CommandResult
from jpsi.plugin.kit import expand_hostlist
from jpsi_testing.fake import FakeScheduler, Invocation, OptionTable, join_lines, refuse_if

from .arrays import MAX_ARRAY_SIZE, assign_number, check_ids, find_jobs
from .submit import CLUSTER

_SCANCEL = OptionTable(
    flags="quiet|Q",
    valued="clusters|M",
    unknown=(1, "scancel: unrecognized option '{}'\n"),
    abbreviates=True,
)
_SCONTROL = OptionTable(
    flags="all|a oneliner|o version|V",
    valued="clusters|M",
    unknown=(1, "scontrol: unrecognized option '{}'\n"),
    abbreviates=True,
)
_SINFO = OptionTable(
    flags="all|a exact|e noheader|h",
    valued="clusters|M format|o",
    unknown=(1, "sinfo: unrecognized option '{}'\n"),
    abbreviates=True,
)
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
# The lines of `sinfo --exact --format=%R|%c|%m|%D`
_NODES = "main|8|8000|2\ndebug|8|8000|2\n"
_DENIED = 210


def scancel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs; silently skip ended and unknown ones."""
    ids = _SCANCEL.parse(invocation.arguments, permutes=True).words
    refuse_if({"No job identification provided": not ids}, 1, "scancel: error: {}\n")
    check_ids(ids, "scancel: error: Invalid job id {}\n")
    # scancel also reaches jobs that squeue does not list yet.
    named = find_jobs(ids, scheduler.jobs)
    denied = [native_id for native_id, jobs in named.items() if not all(job.is_own for job in jobs)]
    scheduler.cancel_all(job.native_id for it, jobs in named.items() if it not in denied for job in jobs)
    errors = (f"Kill job error on job id {native_id}: Access/permission denied" for native_id in denied)
    stderr = join_lines(f"scancel: error: {error}" for error in errors)
    return CommandResult(returncode=_DENIED if denied else 0, stderr=stderr)


def scontrol(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult | str:
    """Show the configuration, partitions or names of nodes, or hold, release or requeue jobs."""
    arguments = _SCONTROL.parse(invocation.arguments, permutes=True)
    words = arguments.words
    if "version" in arguments.options:
        return f"slurm-wlm {_VERSION}\n"
    if words == ("show", "partition"):
        return _PARTITIONS
    if words == ("show", "config"):
        return _configuration(scheduler)
    if words[:2] == ("show", "hostnames"):
        own = invocation.environment.get("SLURM_JOB_NODELIST", "")
        nodes = expand_hostlist(words[2] if words[2:] else own)
        return CommandResult(returncode=0 if nodes else 1, stdout=join_lines(nodes))
    verb = words[0] if words else ""
    refuse_if({f"invalid keyword: {verb}": verb not in _VERBS}, 1)
    errors = [_change_job(scheduler, verb, native_id) for native_id in words[1:]]
    return CommandResult(returncode=1 if any(errors) else 0, stderr="".join(errors))


def sinfo(_: FakeScheduler, invocation: Invocation) -> str:
    """List the partitions with the size of their nodes, whatever the format."""
    _SINFO.parse(invocation.arguments, permutes=True)
    return _NODES


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
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobRequeue": "1",
        "MaxArraySize": str(MAX_ARRAY_SIZE),
        "MinJobAge": f"{int(scheduler.keep)} sec",
        "RequeueExit": "(null)",
        "RequeueExitHold": "(null)",
        "SLURM_VERSION": _VERSION,
    }
    lines = [f"{name:<23} = {value}" for name, value in settings.items()]
    heading = "Configuration data as of 2026-11-21T08:14:03"
    return join_lines([heading, *lines, "", "Slurmctld(primary) at login01 is UP"])
