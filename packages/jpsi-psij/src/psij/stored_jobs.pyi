from jpsi_psij.stored_jobs import *
