"""This machine: files, processes, and the transport that runs commands on it."""

from typing import TYPE_CHECKING

# not below, as its module has the same name
from jpsi_engine.host.child_environment import child_environment

if TYPE_CHECKING:
    from jpsi_engine.host import pidfd
    from jpsi_engine.host.concurrency import *
    from jpsi_engine.host.directory_watcher import *
    from jpsi_engine.host.file_errors import *
    from jpsi_engine.host.files import *
    from jpsi_engine.host.local_transport import *
    from jpsi_engine.host.private_files import *
    from jpsi_engine.host.procfs import *
    from jpsi_engine.host.reentrant_event import *
else:
    # Listing jobs starts no command and watches nothing.
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".": "pidfd",
            ".concurrency": "concurrently reset_after_fork",
            ".directory_watcher": "MarkerWatch",
            ".file_errors": (
                "RemoteTimeoutError changed_file_error convert_os_errors local_file_error parse_os_error "
                "remote_file_error"
            ),
            ".files": (
                "create_locked exists forget hold_lock is_locked is_transient list_names read_json read_text "
                "take_lock write write_all write_new write_once"
            ),
            ".local_transport": "LocalTransport environment_of",
            ".private_files": (
                "check_directory_here check_private_directory check_way make_directories make_directory "
                "make_private_directory open_private shed_default_acl sync_directory write_synced"
            ),
            ".procfs": (
                "NO_BOOT ProcessId UNKNOWN_START belongs_to_user boot_id command_line find_leader identify "
                "identify_started inherited_state is_on_network parse_native_id seconds_since_start session "
                "start_tick"
            ),
            ".reentrant_event": "ReentrantEvent",
        },
    )
