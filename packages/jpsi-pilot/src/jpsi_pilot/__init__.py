"""Jobs inside jobs for jpsi: the executor pilot.

- `hooks`: what the core asks. `client` is the program that its commands run.
- `agent`: the process that keeps the queue and starts pilots.
- `warden` and `worker`: what a pilot runs on each of its nodes.
"""
