"""The version of psij-python whose interface this package has."""

VERSION = "0.9.11"
__version__ = VERSION
