from jpsi_psij.job_executor_config import *
