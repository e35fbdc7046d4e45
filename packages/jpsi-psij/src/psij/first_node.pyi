from jpsi_psij.first_node import *
