from jpsi_psij.job import *
