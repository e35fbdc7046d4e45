"""Renders the lines of the runner's script that send the job a signal before the end of its walltime.

A shell between the runner and the job waits for the job. A process beside it sleeps until the time has come
and then signals that shell, which passes the warning on. The runner itself gets no signal, so that the
warning does not look like the end of the job.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import attrs

from jpsi.plugin import ExecutorConfig, JobSpec
from jpsi.plugin.engine import walltime_limit
from jpsi.plugin.kit import SIGNALS


@attrs.frozen(slots=True)
class WalltimeWarning:
    """The warning of one job."""

    #: The signal that the job gets.
    signal: str
    #: The seconds of its walltime after which it gets the signal.
    after: int

    @classmethod
    def of(cls, spec: JobSpec, config: ExecutorConfig) -> WalltimeWarning | None:
        """Return the warning for a valid job; None if it requests none."""
        warn, limit = spec.attributes.warn, walltime_limit(spec, config)
        if warn is None or limit is None:
            return None
        signal, seconds = warn
        return cls(signal, max(0, math.floor(limit.total_seconds() - seconds)))


def warning_problems(spec: JobSpec, config: ExecutorConfig) -> Iterator[str]:
    """Yield why a valid job cannot get the warning that it requests."""
    if spec.attributes.warn is None:
        return
    limit = walltime_limit(spec, config)
    _, seconds = spec.attributes.warn
    if limit is None:
        yield "attributes.warn: the job has no time limit, before whose end it could be warned; set duration"
    elif seconds >= limit.total_seconds():
        yield f"attributes.warn is {seconds:g} s before the end, and the job may run for {limit} only"


def note_start() -> str:
    """Return the line that notes the time at which the job began."""
    return "_jpsi_start=0; { read -r _jpsi_start _ </proc/uptime; } 2>/dev/null || :"


def warned_launch(warning: WalltimeWarning, launch: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the shell that waits for the job; its exit code is that of the job.

    Args:
        warning: the warning.
        launch: the lines that start the job in the background and wait for it with `forward_signals`.
    """
    text = _BEGIN.replace("@SIGNAL@", warning.signal).replace("@AFTER@", str(warning.after))
    yield from text.replace("@SIGNALS@", " ".join(SIGNALS)).splitlines()
    yield from launch
    yield from _END.splitlines()


# URG has no effect on a process that does not expect it, should the shell have ended. Other signals are for
# the job: should they reach the timer, which is in the same session, it goes on. It can be ended at any
# moment: by TERM before it has set its traps, by URG afterwards. It never exits without one of these, or a
# signal to the shell, which might signal another process with its pid otherwise. It sleeps again if its sleep
# is killed; if it cannot sleep, it stops until CONT. A signal that comes between its fork and its exec is
# lost, as that process has the traps of the shell; by the time that it runs, the shell has ended, and so it
# ends as well.
_BEGIN = """\
trap '_jpsi_timer=""; _jpsi_pass @SIGNAL@' URG
_jpsi_waiter=""; { read -r _jpsi_waiter _ </proc/self/stat; } 2>/dev/null || :
# shellcheck disable=SC2016  # the timer expands it
/bin/sh -c '
  trap "kill -s KILL \\"\\$!\\" 2>/dev/null; exit" URG
  trap "" @SIGNALS@
  [ "${3:-$PPID}" = "$PPID" ] || exit
  PATH=${PATH-}:/usr/bin:/bin
  until
    now=$2
    { read -r now _ </proc/uptime; } 2>/dev/null || :
    left=$(($1 - ${now%.*} + ${2%.*}))
    [ "$left" -gt 0 ] || left=0
    sleep "$left" &
    wait "$!"
  do
    [ "$?" -gt 128 ] || { trap exit URG; while :; do kill -s STOP "$$"; done; }
  done
  kill -s URG "$PPID"
' jpsi-timer @AFTER@ "$_jpsi_start" "$_jpsi_waiter" </dev/null >/dev/null 2>&1 8>&- &
_jpsi_timer=$!"""

_END = """\
[ -z "$_jpsi_timer" ] || kill -s TERM "$_jpsi_timer" 2>/dev/null || :
[ -z "$_jpsi_timer" ] || kill -s URG "$_jpsi_timer" 2>/dev/null || :
[ -z "$_jpsi_timer" ] || kill -s CONT "$_jpsi_timer" 2>/dev/null || :
exit "$_jpsi_code\""""
