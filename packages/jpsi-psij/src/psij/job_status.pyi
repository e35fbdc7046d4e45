from jpsi_psij.job_status import *
