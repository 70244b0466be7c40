"""Planning questions about a cluster: each is a function over objects with a frozen answer.

    capacity    how many more of this pod fit, and what runs out first
    gangs       the same for gangs of a shape
    pod_sets    the same for sets of several pods
    drain       what moves where if these nodes go, and what holds them up
    add_nodes   the fewest nodes of given templates until everything fits
    compact     on how few of its nodes the workload would still fit
    compare     the same workload under several configurations
    replay      a recorded run again, exactly or under another configuration

The scheduler itself decides in all of them, with every configured plugin. Nothing here prints,
reads a clock or starts a process.
"""
