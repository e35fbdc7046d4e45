"""`scancel`, `scontrol` and `sinfo` of the fake of Slurm.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

import grp
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence

from jpsi.plugin import CommandResult
from jpsi.plugin.kit import expand_hostlist
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation, OptionTable, join_lines, refuse_if

from .arrays import MAX_ARRAY_SIZE, assign_number, check_ids, find_jobs
from .listing import is_selected
from .nodes import CLUSTER
from .states import SHORT_STATES, Line, elapsed_seconds, format_clock, format_time

_SCANCEL = OptionTable(
    flags="batch|b full|f hurry|H me quiet|Q verbose|v",
    valued="account|A clusters|M name|n jobname partition|p signal|s state|t user|u",
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
# The options of scancel that select jobs
_FILTERS = frozenset({"account", "me", "name", "partition", "state", "user"})
# The signals after which a job is cancelled
_ENDS_JOBS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT})


def scancel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs; silently skip ended and unknown ones."""
    parsed = _SCANCEL.parse(invocation.arguments, permutes=True)
    ids, options = [part for word in parsed.words for part in word.split()], parsed.options
    options |= {"name": options["jobname"]} if "jobname" in options else {}
    is_filtered = not _FILTERS.isdisjoint(options)
    refuse_if({"No job identification provided": not ids and not is_filtered}, 1, "scancel: error: {}\n")
    check_ids(ids, "scancel: error: Invalid job id {}\n")
    # scancel also reaches jobs that squeue does not list yet.
    named = find_jobs(ids, scheduler.jobs)
    if not ids:
        named = {job.native_id: [job] for job in scheduler.jobs if job.is_own and not job.state.final}
    denied = [native_id for native_id, jobs in named.items() if not all(job.is_own for job in jobs)]
    permitted = [job for native_id, jobs in named.items() if native_id not in denied for job in jobs]
    chosen = [job.native_id for job in permitted if is_selected(job, options) and _has_state(job, options)]
    errors = dict.fromkeys(denied, "Access/permission denied")
    unsent = _send(scheduler, chosen, _signal_number(options.get("signal", "KILL")))
    errors |= dict.fromkeys(unsent, "the signal cannot be sent")
    stderr = join_lines(f"scancel: error: Kill job error on job id {it}: {why}" for it, why in errors.items())
    return CommandResult(returncode=_DENIED if errors else 0, stderr=stderr)


def _has_state(job: FakeJob, options: Mapping[str, str]) -> bool:
    state = Line(job, job.native_id).state
    return options.get("state", state).upper() in {state, SHORT_STATES[state]}


def _send(scheduler: FakeScheduler, native_ids: Sequence[str], number: int) -> list[str]:
    """Send a signal to jobs; return the ids of those that cannot get it."""
    if number in _ENDS_JOBS:
        scheduler.cancel_all(native_ids)
        return []
    return [native_id for native_id in native_ids if not scheduler.signal(native_id, number)]


def _signal_number(text: str) -> int:
    """Return the signal that a name or a number means."""
    name = f"SIG{text.upper().removeprefix('SIG')}"
    is_known = text.isdecimal() or name in signal.Signals.__members__
    refuse_if({f"Unknown job signal: {text}": not is_known}, 1, "scancel: error: {}\n")
    return int(text) if text.isdecimal() else signal.Signals[name]


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
    if words[:2] == ("show", "job"):
        return _show_jobs(scheduler, invocation, words[2:], is_short="oneliner" in arguments.options)
    verb = words[0] if words else ""
    refuse_if({f"invalid keyword: {verb}": verb not in _VERBS}, 1)
    errors = [_change_job(scheduler, verb, native_id) for native_id in words[1:]]
    return CommandResult(returncode=1 if any(errors) else 0, stderr="".join(errors))


def sinfo(_: FakeScheduler, invocation: Invocation) -> str:
    """List the partitions with the size of their nodes, whatever the format."""
    _SINFO.parse(invocation.arguments, permutes=True)
    return _NODES


_VERBS: dict[str, Callable[[FakeScheduler, str], object]] = {
    "hold": lambda scheduler, native_id: scheduler.hold(native_id),
    "release": lambda scheduler, native_id: scheduler.release(native_id),
    "requeue": lambda scheduler, native_id: scheduler.requeue(native_id),
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


def _show_jobs(
    scheduler: FakeScheduler, invocation: Invocation, ids: Sequence[str], *, is_short: bool
) -> CommandResult | str:
    """Describe jobs, each in lines or in one line."""
    jobs = scheduler.listed()
    named = find_jobs(ids, jobs)
    if ids and not all(named.values()):
        return CommandResult(returncode=1, stderr="slurm_load_jobs error: Invalid job id specified\n")
    chosen = [job for found in named.values() for job in found] if ids else jobs
    if not chosen:
        return "No jobs in the system\n"
    lines = (_describe(Line(job, job.native_id), invocation, scheduler.clock()) for job in chosen)
    if is_short:
        return join_lines(" ".join(it) + " " for it in lines)
    return "".join("\n   ".join(it) + "\n\n" for it in lines)


def _describe(line: Line, call: Invocation, now: float) -> Iterator[str]:
    """Yield the lines of scontrol about a job, as Slurm 22.05 prints them, without some."""
    job, limit = line.job, line.job.time_limit
    is_element = job.array and f" ArrayJobId={job.array} ArrayTaskId={job.index}"
    user, group = f"{job.owner}({os.getuid()})", f"{grp.getgrgid(os.getgid()).gr_name}({os.getgid()})"
    end = job.ended if job.ended or None in (job.started, limit) else job.started + limit  # type: ignore[operator]
    nodes = job.attributes.get("nodes", 1)
    yield f"JobId={line.number}{is_element or ''} JobName={job.name}"
    yield f"UserId={user} GroupId={group} MCS_label=N/A"
    yield f"Priority=1 Nice=0 Account={job.project or '(null)'} QOS={line.option('qos', 'normal')}"
    yield f"JobState={line.state} Reason={line.reason} Dependency={line.option('dependency')}"
    code = f"{line.status >> 8 & 0xFF}:{line.status & 0x7F}"
    yield f"Requeue=1 Restarts={job.restarts} BatchFlag=1 Reboot=0 ExitCode={code}"
    yield f"RunTime={format_clock(elapsed_seconds(job, now))} TimeLimit={format_clock(limit)} TimeMin=N/A"
    submitted = format_time(job.submitted, call, "Unknown")
    yield f"SubmitTime={submitted} EligibleTime={submitted}"
    started, ended = (format_time(it, call, "Unknown") for it in (job.started, end))
    yield f"StartTime={started} EndTime={ended} Deadline=N/A"
    yield f"Partition={job.queue} AllocNode:Sid={os.uname().nodename}:1"
    yield "ReqNodeList=(null) ExcNodeList=(null)"
    yield f"NodeList={line.nodes or '(null)'}"
    if line.nodes:
        yield f"BatchHost={line.nodes.partition(',')[0]}"
    per_task = line.option("cpus-per-task", "1")
    yield f"NumNodes={nodes} NumCPUs={line.cpus} NumTasks={job.slots} CPUs/Task={per_task} ReqB:S:C:T=0:0:*:*"
    yield f"Command={job.attributes.get('command', '(null)')}"
    yield f"WorkDir={job.directory}"
    yield f"StdErr={job.stderr or '/dev/null'}"
    yield f"StdIn={line.option('input', '/dev/null')}"
    yield f"StdOut={job.stdout or '/dev/null'}"


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
