from jpsi_psij.job_attributes import *
