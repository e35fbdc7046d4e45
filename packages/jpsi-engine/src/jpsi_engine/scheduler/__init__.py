"""The batch system.

Hooks make the commands, and their output becomes snapshots that the processes of one user share.
"""

from jpsi_engine.scheduler.absences import Absences, attempt_name
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.id_spelling import IdSpelling
from jpsi_engine.scheduler.job_view import Absence, JobView, is_final
from jpsi_engine.scheduler.lookup import find_intents, warn_of_damage
from jpsi_engine.scheduler.native_ids import NativeIds, element_intent, intent_tag
from jpsi_engine.scheduler.outage import Outage
from jpsi_engine.scheduler.poll_interval import PollInterval
from jpsi_engine.scheduler.queue_poll import QueuePoll, is_recent, log_failed_query
from jpsi_engine.scheduler.reused_ids import reused_native_ids
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.snapshot import Snapshot, reuse_observations
from jpsi_engine.scheduler.snapshot_lookup import Mentions
from jpsi_engine.scheduler.throttle import Throttle, make_throttle
