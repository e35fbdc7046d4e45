"""Support for several test files: recordings, sites before and after the probe, and output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jpsi.plugin import JobSpec, Site, SubmitContext
from jpsi_lsf import hooks
from jpsi_lsf.config import LsfConfig
from jpsi_testing import Recording, read_recordings

RECORDINGS = Path(__file__).parent / "recordings" / "volclava-2.2"
#: A site before its probe, one with LSF 10.1, and one with something older.
SITE = Site(config=LsfConfig())
MODERN = Site(config=LsfConfig(), offers={"json": True, "requeue_exit_codes": []})
OLD = Site(config=LsfConfig(), offers={"json": False, "requeue_exit_codes": []})
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")


def site(**config: Any) -> Site:
    return Site(config=LsfConfig(**config))


def recordings(scenario: str) -> list[Recording]:
    return read_recordings(RECORDINGS / f"{scenario}.json")


_SECTIONS = """
 SCHEDULING PARAMETERS:
           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem
 loadSched   -     -     -     -       -     -    -     -     -      -      -
 loadStop    -     -     -     -       -     -    -     -     -      -      -

 RESOURCE REQUIREMENT DETAILS:
 Combined: select[type == local] order[r15s:pg]
 Effective: select[type == local] order[r15s:pg]
"""
_SUBMITTED = "Mon May  6 22:58:03: Submitted"
_BETWEEN = f"{'-' * 78}\n"


def bjobs_l(*jobs: str) -> str:
    """Return the output of `bjobs -l` about jobs, given the first line of each and other relevant lines."""
    whole = (job if _SUBMITTED in job else f"{job}\n{_SUBMITTED} from host <h>;" for job in jobs)
    return _BETWEEN.join(f"\n{job}\n{_SECTIONS}" for job in whole) + "\n"


def bhist_l(*jobs: str, run_time: int = 0) -> str:
    """Return the output of `bhist -l` about jobs, given likewise."""
    summary = (
        "\nSummary of time in seconds spent in various states by  Mon May  6 23:00:00\n"
        "  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n"
        f"  0        0        {run_time:<9}0        0        0        {run_time:<12}\n"
    )
    return _BETWEEN.join(f"\n{job.strip()}\n{summary}" for job in jobs) + "\n"


def directives(spec: JobSpec, context: SubmitContext = CONTEXT) -> list[str]:
    """Return the directives for a spec, without those that every job has."""
    usual = ("-J ", "-Jd ", "-o ", "-e ", "-W ")
    lines = [
        directive.text.removeprefix("#BSUB ") for directive in hooks.render_script(spec, context).directives
    ]
    return [line for line in lines if not line.startswith(usual)]


def problems(spec: JobSpec, **config: Any) -> list[str]:
    return hooks.check_spec(spec, site(**config))
