"""This machine: files, processes, the submit queue, and the transport that runs commands on it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.host import pidfd
    from jpsi_engine.host.directory_watcher import (
        MarkerWatch,
    )
    from jpsi_engine.host.file_errors import (
        NoAnswerError,
        changed_file_error,
        local_file_error,
        parse_os_error,
        remote_file_error,
    )
    from jpsi_engine.host.files import (
        exists,
        forget,
        is_transient,
        read_json,
        read_text,
        take_lock,
        write,
        write_all,
        write_new,
        write_once,
    )
    from jpsi_engine.host.filesystems import (
        is_on_network,
    )
    from jpsi_engine.host.local_transport import (
        LocalTransport,
        environment_of,
    )
    from jpsi_engine.host.procfs import (
        NO_BOOT,
        NOBODY,
        ProcessId,
        belongs_to_user,
        boot_id,
        command_line,
        current_umask,
        identify,
        identify_started,
        parse_native_id,
        seconds_since_start,
        session,
        start_tick,
    )
    from jpsi_engine.host.submit_queue import (
        QuotaReached,
        SubmissionCancelled,
        SubmitQueue,
        not_admitted,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "directory_watcher": "MarkerWatch",
            "file_errors": (
                "NoAnswerError changed_file_error local_file_error parse_os_error remote_file_error"
            ),
            "files": (
                "exists forget is_transient read_json read_text take_lock write write_all write_new "
                "write_once"
            ),
            "filesystems": "is_on_network",
            "local_transport": "LocalTransport environment_of",
            "procfs": (
                "NOBODY NO_BOOT ProcessId belongs_to_user boot_id command_line current_umask identify "
                "identify_started parse_native_id seconds_since_start session start_tick"
            ),
            "submit_queue": "SubmitQueue QuotaReached SubmissionCancelled not_admitted",
            "": "pidfd",
        },
    )

__all__ = [
    "NOBODY",
    "NO_BOOT",
    "LocalTransport",
    "MarkerWatch",
    "NoAnswerError",
    "ProcessId",
    "QuotaReached",
    "SubmissionCancelled",
    "SubmitQueue",
    "belongs_to_user",
    "boot_id",
    "changed_file_error",
    "command_line",
    "current_umask",
    "environment_of",
    "exists",
    "forget",
    "identify",
    "identify_started",
    "is_on_network",
    "is_transient",
    "local_file_error",
    "not_admitted",
    "parse_native_id",
    "parse_os_error",
    "pidfd",
    "read_json",
    "read_text",
    "remote_file_error",
    "seconds_since_start",
    "session",
    "start_tick",
    "take_lock",
    "write",
    "write_all",
    "write_new",
    "write_once",
]
