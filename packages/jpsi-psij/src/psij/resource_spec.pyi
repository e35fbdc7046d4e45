from jpsi_psij.resource_spec import *
