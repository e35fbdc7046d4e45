"""Parses URLs such as ssh://me@login.example:22; no part of a URL can become an option of ssh."""

from __future__ import annotations

import re
from typing import Self
from urllib.parse import unquote, urlsplit

import attrs

from jpsi.plugin import ConfigError

# Characters without a meaning for ssh or for the shell that runs a ProxyCommand with them. A host may be an
# alias from the user's configuration, or an IPv6 address.
_HOST = re.compile(r"[A-Za-z0-9_.:][A-Za-z0-9_.:-]*\Z")
_USER = re.compile(r"[A-Za-z0-9_.+@=][A-Za-z0-9_.+@=-]*\Z")
_FORM = "it must look like ssh://login.example, ssh://me@login.example or ssh://me@login.example:22"


@attrs.frozen(slots=True)
class Address:
    """The host, user and port of a connection; the user's ssh configuration decides where a field is None."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Parse the address in a URL.

        >>> Address.from_url("ssh://me@login.example:2222")
        Address(host='login.example', user='me', port=2222)

        Raises:
            ConfigError: the URL is no address, or contains more than an address.
        """
        try:
            parts = urlsplit(url)
            # urlsplit makes the host's name lower case, which an alias need not be
            host = parts.netloc.rpartition("@")[2]
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            port, user = parts.port, parts.username
        except ValueError as e:
            raise ConfigError(f"{url!r} is no address: {e}; {_FORM}") from e
        if parts.password is not None:
            raise ConfigError(f"the URL for {host!r} contains a password; remove it: ssh prompts for it")
        if parts.path.strip("/") or parts.query or parts.fragment:
            msg = f"{url!r} contains more than an address; {_FORM}, and options belong into ~/.ssh/config"
            raise ConfigError(msg)
        user = None if user is None else unquote(user)
        if not _HOST.match(host):
            raise ConfigError(f"{url!r} names no host that ssh accepts; {_FORM}")
        if user is not None and not _USER.match(user):
            raise ConfigError(f"{url!r} names no user that ssh accepts; {_FORM}")
        if port == 0:
            raise ConfigError(f"{url!r} names port 0; {_FORM}")
        return cls(host, user, port)

    def __str__(self) -> str:
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host and port else self.host
        return f"{user}{host}{port}"
