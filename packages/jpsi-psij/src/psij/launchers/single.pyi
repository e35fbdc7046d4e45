from jpsi_psij.launchers.single import *
