"""The executor `pilot` for jpsi: it runs jobs inside other jobs.

- `hooks`: the hooks that the core calls, implemented in `executor`. Their commands run the program `client`.
- `agent`: the process that keeps the queue and starts pilots.
- `engines`: finds the engines that run jobs inside pilots, such as `dask` and `flux`.
- `node`: the processes of a pilot on each of its nodes, beside the worker of its engine.
- `protocol` and `network`: the messages between client, agent and nodes, and their transport.
"""
