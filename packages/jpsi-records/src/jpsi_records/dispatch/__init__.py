"""The dispatcher, which runs what is wanted.

It takes leases on executions, runs each as one J/PSI job at a time, and takes in what
jobs leave in their inboxes.
"""

from .dispatcher import Dispatcher

__all__ = [
    "Dispatcher",
]
