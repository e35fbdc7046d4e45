"""`jpsi request serve`: the records as pages, for the browser of one user of this machine."""

from .server import Server

__all__ = [
    "Server",
]
