"""Many runs of one workload: over parameters and seeds, on all cores or on a Dask cluster.

    parameters  what differs between the runs: `seed=0..9`, `weight.NodeAffinity=1,5`
    run         one run: the workload with its parameters applied, and its summary
    sweep       all runs: missing ones are made, finished ones are read from a folder
    processes   workers on this machine's cores
    dask        workers of a Dask cluster

The only package between the simulation and the command line that starts processes.
"""
