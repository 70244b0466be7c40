"""One HTML file that tells what came of a simulation: no network, no server, nothing to install.

page        the file: head, sections, style and script
sections    what is told, in which order
charts      lines, stacked areas and bars
frame       a chart's paper: margins, axes, grid
ticks       round numbers and times for axes
heat_map    how full every node was at every time, as a picture
html        text into HTML, safely
"""
