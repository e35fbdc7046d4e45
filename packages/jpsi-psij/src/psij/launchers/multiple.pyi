from jpsi_psij.launchers.multiple import *
