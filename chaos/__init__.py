"""Random trials with faults between a program, its jobs and a batch system.

    ./dev chaos                           the short form, a minute or less
    ./dev chaos --long                    a thousand rounds on the fakes, three hundred on a real Slurm
    ./dev chaos --seed 7 --only slurm:controller:3     one round again

A round has a batch system, a few jobs, a client program (`client`) that is killed now and then, and one fault
(`faults`). Each job leaves proof of its run, and ends with an exit code of its own; the `referee` compares
the proof with the statuses that jpsi reported.
"""
