from jpsi_psij.exceptions import *
