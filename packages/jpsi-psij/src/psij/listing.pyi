from jpsi_psij.listing import *
