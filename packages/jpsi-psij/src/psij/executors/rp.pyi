from jpsi_psij.executors.rp import *
