from jpsi_psij.paths import *
