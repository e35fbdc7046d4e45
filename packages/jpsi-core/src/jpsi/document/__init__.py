"""Job documents.

YAML and JSON text that becomes a JobSpec, with every problem named by its line, and back.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.document.documents import (
        read_document,
        write_document,
    )
    from jpsi.document.problems import (
        Mistakes,
        did_you_mean,
        shown,
    )
    from jpsi.document.text import (
        parse,
    )
    from jpsi.document.values import (
        Value,
    )
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "documents": "read_document write_document",
            "problems": "Mistakes did_you_mean shown",
            "text": "parse",
            "values": "Value",
        },
    )

__all__ = [
    "Mistakes",
    "Value",
    "did_you_mean",
    "parse",
    "read_document",
    "shown",
    "write_document",
]
