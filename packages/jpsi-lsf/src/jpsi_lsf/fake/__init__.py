"""The fakes of LSF 10.1 and of volclava 2.2, which is compatible with older versions of LSF.

Tests and `jpsi fake` run jobs on the fakes, without a real LSF.
"""
