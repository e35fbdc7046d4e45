from jpsi_psij.converted import *
