from jpsi_psij.pbs_listing import *
