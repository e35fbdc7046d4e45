"""Flux for jpsi: what jpsi-core must say to Flux, and what Flux's answers mean. Nothing here acts."""

from .config import FluxConfig

__all__ = ["FluxConfig"]
