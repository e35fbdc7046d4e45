from jpsi_psij.job_info import *
