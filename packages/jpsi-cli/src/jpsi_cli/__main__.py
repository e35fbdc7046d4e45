"""Runs `jpsi` as `python -m jpsi_cli`."""

from .main import main

main()
