"""Job documents: one JobSpec as YAML or JSON, in the format of J/PSI Appendix A.

It reads and writes them; every problem is reported with its line. Workflows of many tasks are not read here:
their documents are another format, which jpsi-jobspec reads.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.document.documents import document_command, read_document, write_document
    from jpsi.document.text import explain_yaml_error, parse
    from jpsi.document.values import Value, did_you_mean, shown
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".documents": "document_command read_document write_document",
            ".text": "explain_yaml_error parse",
            ".values": "Value did_you_mean shown",
        },
    )
