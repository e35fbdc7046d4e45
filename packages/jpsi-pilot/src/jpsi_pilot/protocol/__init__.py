"""The messages between client, agent, engines and nodes, and the interface of an engine.

Authors of engines use `PilotEngine` and the types of its methods.
"""

from .engine import EngineMaker, Equipment, NodeLost, PilotEngine, PilotNode, hostname_of, pilot_of
from .values import (
    ALLOCATION,
    JOB_VARIABLE,
    LOG_VARIABLE,
    STARTER_VARIABLE,
    End,
    Need,
    Settings,
    Share,
    Task,
    write_private,
)
