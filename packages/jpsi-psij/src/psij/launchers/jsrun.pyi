from jpsi_psij.launchers.jsrun import *
