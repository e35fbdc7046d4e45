"""The package `psij`: the modules of `jpsi_psij` under the names of psij-python.

`psij.serialize` is `jpsi_psij.serialize` itself, so that each class exists once. Type checkers, which do not
run this, find it by the stub `serialize.pyi`.
"""

import importlib
import importlib.metadata
import pkgutil
import sys
from typing import TYPE_CHECKING

import jpsi_psij

if TYPE_CHECKING:
    from jpsi_psij import *


def _refuse_clash() -> None:
    """Raise ImportError if psij-python is installed as well: its files are mixed with those of this one."""
    try:
        importlib.metadata.distribution("psij-python")
    except importlib.metadata.PackageNotFoundError:
        return
    raise ImportError(
        "psij-python and jpsi-psij are both installed, and both provide the package psij. To use jpsi-psij: "
        "pip uninstall psij-python; pip install --force-reinstall --no-deps jpsi-psij. To keep both: "
        "pip install --force-reinstall --no-deps psij-python, and `import jpsi_psij as psij` for jpsi-psij"
    )


_refuse_clash()
for _module in pkgutil.walk_packages(jpsi_psij.__path__, "jpsi_psij."):
    sys.modules[_module.name.removeprefix("jpsi_")] = importlib.import_module(_module.name)
sys.modules[__name__] = jpsi_psij
