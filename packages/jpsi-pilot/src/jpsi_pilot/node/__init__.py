"""The processes of a pilot on a node, whatever its engine is.

The `node_supervisor` starts the worker of the engine and ends what it leaves (`supervision`). The worker runs
jobs (`runs`), each a session with devices of its own, and records in the `node_log` which runs have begun and
ended.
"""

from .node_log import (
    NodeLog,
    NodeLogContent,
    ended_nodes,
    engine_log_node,
    log_path,
    read_node_log,
    request_stop,
    requested_stops,
)
from .runs import NoDeviceError, Runs, read_environment
from .supervision import end_orphans, is_on_this_machine, python_command, watch_supervisor
