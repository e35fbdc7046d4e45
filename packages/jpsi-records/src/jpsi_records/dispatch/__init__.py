"""The dispatcher, which runs requested executions.

It leases executions, runs each as one J/PSI job at a time, and takes in the requests that
jobs leave in their inboxes.
"""

from .dispatcher import Dispatcher
