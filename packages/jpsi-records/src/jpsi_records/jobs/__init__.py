"""The job of one attempt at an execution.

Staging of its inputs below a root, its J/PSI spec, the container that it runs in, the capacity of its
temporary directories, and the meaning of its end for the execution.
"""

from .attempt_job import AttemptFiles, job_spec
from .containers import engine_problem, find_engine
from .job_outcome import End, end_of
from .materialize import CapturedOutput, Materializer, remove_root, revoke
from .tmp_capacity import TMP_CAPACITY, excess, shortages
