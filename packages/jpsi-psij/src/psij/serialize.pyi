from jpsi_psij.serialize import *
