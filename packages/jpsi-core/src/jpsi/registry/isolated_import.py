"""Imports plugins from directories under private names, so that two versions can be loaded together."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from collections.abc import Collection
from types import ModuleType

#: The prefix of the modules of plugins from directories.
PRIVATE = "_jpsi_plugin_"
_PREFIX = re.compile(PRIVATE + r"[0-9a-f]{16}\.")
_locks: dict[str, threading.RLock] = {}
_lock = threading.Lock()


def private_name(directory: str, folder: str) -> str:
    """Return the name of the package for one version of a distribution in one directory."""
    import hashlib

    digest = hashlib.sha256(f"{directory}\0{folder}".encode(errors="surrogateescape")).hexdigest()
    return f"{PRIVATE}{digest[:16]}"


def public_name(module: str) -> str:
    """Return a module's name outside of its private package.

    >>> public_name("_jpsi_plugin_0123456789abcdef.toy.part"), public_name("numpy")
    ('toy.part', 'numpy')
    """
    return module.partition(".")[2] if module.startswith(PRIVATE) else module


def public_text(text: str) -> str:
    """Return a message without the names of private packages.

    >>> public_text("No module named '_jpsi_plugin_0123456789abcdef.toy'")
    "No module named 'toy'"
    """
    return _PREFIX.sub("", text)


def import_privately(package: str, directory: str, module: str) -> ModuleType:
    """Import `module` from a directory as a part of the private `package`.

    Its relative imports stay in that package. A failed import leaves no modules behind.
    """
    with _lock:
        lock = _locks.setdefault(package, threading.RLock())
    with lock:
        before = set(sys.modules)
        if package not in sys.modules:
            parent = ModuleType(package)
            parent.__path__ = [directory]
            sys.modules[package] = parent
        try:
            importlib.invalidate_caches()  # the plugin may have been installed a moment ago
            return importlib.import_module(f"{package}.{module}")
        except BaseException:
            forget([name for name in set(sys.modules) - before if is_within(name, package)])
            raise


def forget(names: Collection[str]) -> None:
    """Remove modules from this process whose import failed."""
    for name in names:
        sys.modules.pop(name, None)


def is_within(name: str, package: str) -> bool:
    """Return True if a module is `package` or a part of it."""
    return name == package or name.startswith(f"{package}.")
