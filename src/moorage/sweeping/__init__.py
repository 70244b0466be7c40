"""Many runs of one thing: over parameters and seeds, on all cores or on a Dask cluster.

    parameters  what differs between the runs: `seed=0..9`, `weight.NodeAffinity=1,5`
    run         one run: the workload with its parameters applied, and the figures it gives
    folder      finished runs as files, so that an interrupted sweep goes on where it was
    sweep       all of it: what is missing is run, the rest is read back
    processes   workers on this machine's cores
    dask        workers of a Dask cluster

The only room between the simulation and the command line that knows processes.
"""
