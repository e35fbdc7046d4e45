"""The Flux backend of jpsi: it renders Flux commands and parses their output. It runs no command itself."""

from .config import FluxConfig

__all__ = ["FluxConfig"]
