from jpsi_psij.launchers import *
