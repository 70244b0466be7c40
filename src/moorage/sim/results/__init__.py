"""What a simulation tells: recorded as it runs, summed up at any moment, written as JSON or CSV.

recorder    follows the cluster, one change at a time, and takes a sample now and then
rooms       how much each node has, and how much of it is taken
samples     the course of things: a column per quantity
result      the whole: utilisation, waits, who is pending and why, evictions, nodes
spread      pods that lie less evenly than they asked for
tables      the same as rows, for CSV
"""
