"""Scenarios: a cluster's day as a file, played in virtual time.

wire        `kind: Scenario` as it is written
reading     a file -> a plan; complaints name the field
plan        what is to happen: streams of pods, and events
lifetimes   how long pods run
actions     what an event does to the cluster
play        a plan and a simulation: everything happens at its time
openb, google   plans from public traces
"""
