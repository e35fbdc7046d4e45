"""Measurements of jpsi beside its competitors, separate from the tests: programs and shared modules."""
