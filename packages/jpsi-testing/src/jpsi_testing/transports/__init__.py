"""Transports for tests: to a fake batch system, to a simulated remote host, and to recordings."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_testing.transports.fake_transport import FakeTransport
    from jpsi_testing.transports.remote import RemoteTransport
    from jpsi_testing.transports.replay import ReplayTransport
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {".remote": "RemoteTransport", ".fake_transport": "FakeTransport", ".replay": "ReplayTransport"},
    )
