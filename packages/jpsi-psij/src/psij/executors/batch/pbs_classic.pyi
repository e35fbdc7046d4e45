from jpsi_psij.executors.batch.pbs_classic import *
