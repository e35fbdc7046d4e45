"""The engine `flux`.

Each pilot is a Flux instance.

Its `engine` in the agent talks to the `node` beside the first broker of the `instance`, which submits each
`task` as one of its `jobs`.
"""

from .engine import FluxEngine

__all__ = ["FluxEngine"]
