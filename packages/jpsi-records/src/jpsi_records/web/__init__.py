"""`jpsi request serve`: the records as web pages, for one user of this machine."""

from .server import Server
