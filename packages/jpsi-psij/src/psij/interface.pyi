from jpsi_psij.interface import *
