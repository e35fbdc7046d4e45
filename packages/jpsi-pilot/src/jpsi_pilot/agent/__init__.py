"""The agent.

The process that keeps the queue of one work directory, and starts and ends pilots.

Its `server` takes requests of clients, which the `request_handler` answers from the `state`; the `journal`
keeps what happens in a file. `scheduling` goes round after round: the `verdict` of what has ended, the
`placement` of what waits, and the `fleet` of pilots.
"""

from .server import main

__all__ = ["main"]
