"""The submission of jobs: from the check of the dependencies to the native id.

It prepares a job, writes its intent, hands it off to the batch system and records its native id; also for
many jobs together, and within limits. It also cancels, holds and releases jobs.
"""

from jpsi_engine.submission import control
from jpsi_engine.submission.bulk import BulkSubmission
from jpsi_engine.submission.control import Control
from jpsi_engine.submission.dependency_states import DependencyStates
from jpsi_engine.submission.handoff import Handoff
from jpsi_engine.submission.recovery import Recovery
from jpsi_engine.submission.run_host import RemoteStaging, RunHost, TakenError, UnsentError
from jpsi_engine.submission.submission import SubmissionPipeline
