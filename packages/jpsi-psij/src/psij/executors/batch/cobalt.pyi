from jpsi_psij.executors.batch.cobalt import *
