"""Follows jobs.

Takes in markers and snapshots of the batch system, and publishes the statuses that follow from them.
"""

from jpsi_engine.monitor import poll_loop, publisher
from jpsi_engine.monitor.event_stream import EventStream, Liveness, make_event_stream
from jpsi_engine.monitor.job_monitor import JobMonitor
from jpsi_engine.monitor.poll_loop import PollLoop
from jpsi_engine.monitor.publisher import Publisher
