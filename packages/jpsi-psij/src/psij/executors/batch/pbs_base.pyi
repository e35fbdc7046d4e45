from jpsi_psij.executors.batch.pbs_base import *
