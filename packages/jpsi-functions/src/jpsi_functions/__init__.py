"""Call Python functions in jobs of any batch system: an executor of `concurrent.futures`.

>>> from jpsi_functions import FunctionExecutor
>>> with FunctionExecutor("local") as executor:
...     executor.submit(pow, 2, 10).result()
1024
"""

from .errors import CallError, JobEndedError, RemoteTraceback, UnpicklableError
from .executor import FunctionExecutor
from .futures import CallFuture

__all__ = [
    "CallError",
    "CallFuture",
    "FunctionExecutor",
    "JobEndedError",
    "RemoteTraceback",
    "UnpicklableError",
]
