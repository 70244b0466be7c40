"""The web UI: a page of plain ES modules, and the JSON API that it reads.

snapshot    ClusterSnapshot: the objects of a moment, with the figures of every node
queries     which nodes a search text matches
documents   the answers of the API as plain data
what_if     what changes of the cluster would do
new_configs a configuration that a browser sends as text
timeline    Timeline: the cluster of a recording at any time
activity    Activity: what the scheduler did in the last minutes
history     the facts about a pod as lines
worker      a process that keeps a snapshot and answers requests
server      routes for an HTTP application
live        the objects of a live cluster, for `moorage run --ui`
static/     the page: HTML, CSS and scripts
"""
