from jpsi_psij.launchers.mpirun import *
