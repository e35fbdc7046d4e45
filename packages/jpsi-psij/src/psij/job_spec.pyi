from jpsi_psij.job_spec import *
