"""Measurements of jpsi beside its competitors, never part of the tests: programs, and what they share."""
