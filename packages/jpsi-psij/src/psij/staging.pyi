from jpsi_psij.staging import *
