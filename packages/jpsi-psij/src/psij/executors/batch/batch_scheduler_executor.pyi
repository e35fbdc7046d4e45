from jpsi_psij.executors.batch.batch_scheduler_executor import *
