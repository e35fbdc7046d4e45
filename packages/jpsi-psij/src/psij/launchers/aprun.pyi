from jpsi_psij.launchers.aprun import *
