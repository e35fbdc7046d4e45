from jpsi_psij.job_executor import *
