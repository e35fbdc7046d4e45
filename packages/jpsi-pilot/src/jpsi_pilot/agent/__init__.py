"""The agent: the process outside the pilots that has one work directory's queue, and starts and ends pilots.

A client starts it if none answers. Its `server` takes the requests of clients, the `request_handler` answers
them from the `state`, and the `journal` keeps every event in a file. The `scheduling_loop` records the
`verdict` on ended runs, decides the `placement` of waiting jobs, and adapts the `fleet` of pilots.
"""

from .server import main
