from jpsi_psij.launchers.srun import *
