from jpsi_psij.job_state import *
