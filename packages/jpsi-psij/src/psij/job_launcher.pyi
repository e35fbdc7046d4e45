from jpsi_psij.job_launcher import *
