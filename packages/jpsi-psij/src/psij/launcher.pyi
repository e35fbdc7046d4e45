from jpsi_psij.launcher import *
