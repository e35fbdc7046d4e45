from jpsi_psij.executors import *
