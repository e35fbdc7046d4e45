"""The differences between LSF 10.1 and volclava 2.2 that the fakes implement.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(slots=True, kw_only=True)
class Flavour:
    """The properties of LSF or of volclava."""

    #: The output of `-V`.
    version: str
    #: The options of bsub, with the number of their values.
    options: Mapping[str, int]
    #: The fields that `bjobs -o` knows; it reports an unknown one only if there is a job to print.
    fields: frozenset[str]
    #: True if terminations have names (`TERM_OWNER`), numbers may have units, and `-ti` ends orphans.
    is_lsf_10: bool


def _arity(plain: str, valued: str) -> Mapping[str, int]:
    return {**dict.fromkeys(plain.split(), 0), **dict.fromkeys(valued.split(), 1)}


_PLAIN = "B H I Ip Is K N V h r x"
_VALUED = "D E Ep F J Jd L M P R S W b c e f i is k m n o p q t u w"
_MORE_PLAIN = "Ne ar ptl rn ti"
_MORE_VALUED = "G Q a alloc_flags app cwd env eo g gpu hl jobaff nnodes oo outdir sla sp v"
_FIELDS = (
    "jobid user stat queue from_host exec_host job_name submit_time proj_name cpu_used mem swap pids "
    "start_time finish_time"
)
_MORE_FIELDS = "jobindex exit_code exit_reason pend_reason job_description command"

LSF = Flavour(
    version="IBM Spectrum LSF 10.1.0.0 build 600000, Apr 1 2021",
    options=_arity(f"{_PLAIN} {_MORE_PLAIN}", f"U {_VALUED} {_MORE_VALUED}"),
    fields=frozenset(f"{_FIELDS} {_MORE_FIELDS}".split()),
    is_lsf_10=True,
)
VOLCLAVA = Flavour(
    version="volclava project 2.2, Nov 21 2026",
    options=_arity(_PLAIN, _VALUED),
    fields=frozenset(_FIELDS.split()),
    is_lsf_10=False,
)
