"""The outcome of a simulation: recorded as it runs, summed up at any time.

recorder    counts pods and requests from watch events, and takes samples
usage       how much each node offers, and how much of it is requested
samples     the state of the cluster at selected times
result      Result: the one data model of the outcome, and its JSON
spread      topology spread constraints that do not hold
tables      Result as CSV and as data frames
html        Result in a notebook
"""
