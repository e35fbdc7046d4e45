"""The files that records refer to, and the ways to write them.

Blobs under the digest of their content, manifests of directories, clones of git repositories, atomically
written files, and the permissions of other users. No module of this package knows executions or the database.
"""

from .atomic_files import make_parent_directory, open_untrusted, write_whole
from .blobs import Blobs, Captured
from .manifests import (
    EMPTY,
    Manifest,
    collection_digest,
    digest_of,
    read_manifest,
    subdirectory,
    write_manifest,
)
from .permissions import Reader
from .repositories import Repositories
