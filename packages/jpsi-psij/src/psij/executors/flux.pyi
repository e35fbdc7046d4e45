from jpsi_psij.executors.flux import *
