from jpsi_psij.listed_job import *
