"""The private implementation behind `Job` and `JobExecutor`, which programs import from `jpsi`.

Validation, submission, batching, observers, facts about the batch system, import of submit scripts.
"""

from jpsi.api.batching import Batching
from jpsi.api.script_import import Conversion, read_script
from jpsi.api.submission import JobSubmitter, Observers, by_id, check_job, failure
from jpsi.api.system import System
from jpsi.api.validation import Validation
