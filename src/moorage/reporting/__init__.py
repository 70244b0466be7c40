"""The HTML report of a simulation: one file that needs no network, no server and no installation.

page        the file: head, sections, style and script
sections    the sections, in order
charts      lines, stacked areas and bars
axes        a chart's size, plot area, axes and marks
heat_map    how full every node was at every time, as a picture
cluster_map the map of the web UI, with a slider over the run
html        elements and escaping
"""
