"""The agent: the process that keeps the queue of one work directory, and starts and ends pilots.

Its `server` takes the requests of clients; the `request_handler` answers them from the `state`, and the
`journal` keeps every event in a file. `scheduling` runs the poll loop: the `verdict` on ended runs, the
`placement` of waiting jobs, and the `fleet` of pilots.
"""

from .server import main
