"""Job documents.

Reads YAML and JSON text as a JobSpec, naming every problem with its line, and writes it back.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.document.documents import read_document, write_document
    from jpsi.document.text import parse
    from jpsi.document.values import Value, did_you_mean, shown
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".documents": "read_document write_document",
            ".text": "parse",
            ".values": "Value did_you_mean shown",
        },
    )
