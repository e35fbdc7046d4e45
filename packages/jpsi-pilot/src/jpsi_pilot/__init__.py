"""Jobs inside jobs for jpsi: the executor pilot.

- `hooks`: what the core asks, which `executor` answers. `client` is the program that its commands run.
- `agent`: the process that keeps the queue and starts pilots.
- `engines`: finds what runs jobs inside of pilots, such as `dask` and `flux`.
- `node`: what a pilot runs on each of its nodes, beside the worker of its engine.
- `protocol` and `network`: what these say to each other, and how.
"""
