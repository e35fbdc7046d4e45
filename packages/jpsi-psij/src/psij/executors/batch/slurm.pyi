from jpsi_psij.executors.batch.slurm import *
