"""The plugin of the transport `fake`, by which an executor finds a `FakeTransport` of this process."""

from __future__ import annotations

import weakref

from jpsi.plugin import PluginError, Transport, hookimpl

#: The scheme of urls, with what separates it from a name.
SCHEME = "fake://"
#: The transports of this process by their urls.
transports: weakref.WeakValueDictionary[str, Transport] = weakref.WeakValueDictionary()


@hookimpl
def open_transport(url: str) -> Transport:
    """Return the transport of this process with this `fake://` URL."""
    transport = transports.get(url)
    if transport is None:
        known = ", ".join(sorted(transports)) or "none"
        raise PluginError(f"no FakeTransport of this process has the url {url}; there are: {known}")
    return transport
