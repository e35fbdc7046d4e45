from jpsi_psij.executors.local import *
