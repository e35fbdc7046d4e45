"""Why jpsi itself ends a job, as it stands in the spool."""

CANCEL, TIMEOUT = "cancel", "timeout"
