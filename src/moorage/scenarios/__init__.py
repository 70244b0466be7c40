"""Scenarios: a cluster's day as a file, played in virtual time.

wire        `kind: Scenario` as it is written
reading     a file -> a plan; errors name the field
plan        what happens: streams of pods with their lifetimes, and events
play        a plan on a simulation: everything happens at its time
maintenance drains and failures of nodes
openb, google   plans from public traces
"""
