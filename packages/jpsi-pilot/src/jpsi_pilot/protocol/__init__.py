"""The messages between client, agent, engines and nodes, and the interface of an engine.

Authors of engines use `PilotEngine` and the types of its methods.
"""

from .engine import EngineMaker, Equipment, PilotEngine
from .nodes import NodeLost, PilotNode, hostname_of, pilot_of
from .private_files import write_private
from .values import ALLOCATION, JOB_VARIABLE, End, Need, Settings, Share, Task
