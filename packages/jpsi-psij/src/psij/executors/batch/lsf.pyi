from jpsi_psij.executors.batch.lsf import *
