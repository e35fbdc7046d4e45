"""The configuration: files of site and user, targets, and the values for what jobs leave open."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.config import loader
    from jpsi.config.fields import structured
    from jpsi.config.loader import Configuration, Configured, configuration, named_file
    from jpsi.config.settings import Section, SpecDefaults
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".fields": "structured",
            ".loader": "Configuration Configured configuration named_file",
            ".settings": "Section SpecDefaults",
            ".": "loader",
        },
    )
