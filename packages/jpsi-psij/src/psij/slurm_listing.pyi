from jpsi_psij.slurm_listing import *
