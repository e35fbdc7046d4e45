"""`jpsi request`: every use case as a command."""
