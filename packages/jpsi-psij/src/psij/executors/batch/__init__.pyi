from jpsi_psij.executors.batch import *
