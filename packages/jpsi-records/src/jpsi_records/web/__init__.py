"""`jpsi request serve`: the records as pages, for the browser of one user of this machine."""
