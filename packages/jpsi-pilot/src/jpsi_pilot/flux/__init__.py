"""The engine `flux`: each pilot is a Flux instance.

The `engine` in the agent talks to the `node` process beside the first broker of the `instance`, which submits
each `task` as one of its `jobs`.
"""

from .engine import FluxEngine
