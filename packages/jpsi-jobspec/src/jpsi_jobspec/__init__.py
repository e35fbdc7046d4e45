"""Workflows in YAML, as JobSpec NG writes them, on every batch system."""
