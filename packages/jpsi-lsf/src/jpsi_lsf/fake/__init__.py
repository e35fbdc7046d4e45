"""How the commands of LSF 10.1, and of what is compatible with older versions, answer over a fake."""
