"""The executors of batch systems."""
