"""The commands of a batch system for jobs on any executor: `jpsi speak slurm -x gridengine -- COMMAND`.

A command is a small client. It talks over a socket of the user to a server that has the executor, and that
ends by itself. What the server has accepted is in a journal in jpsi's state directory.
"""
