from jpsi_psij.version import *
