"""`python -m jpsi_cli` is `jpsi`."""

from .main import main

main()
