from jpsi_psij.executors.batch.pbs import *
