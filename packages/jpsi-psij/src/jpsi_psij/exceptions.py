"""The exceptions of psij, which are those of jpsi."""

from jpsi import InvalidJobException, SubmitException

__all__ = ["InvalidJobException", "SubmitException"]
