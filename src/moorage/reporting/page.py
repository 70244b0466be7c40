"""The file: head, sections, style and script, all in one."""

import re
from collections.abc import Iterable, Sequence
from importlib import resources

from moorage.explaining import Explanation
from moorage.planning.prices import ClusterCost
from moorage.reporting import axes, html, sections
from moorage.reporting.html import tag
from moorage.sim.results.result import Result
from moorage.version import __version__

# Nothing may be fetched: what the page needs, it has.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def render(
    result: Result,
    *,
    title: str,
    seed: int,
    explanations: Sequence[Explanation] = (),
    cost: ClusterCost | None = None,
) -> str:
    """The report as one HTML document; the same for the same result, byte for byte."""
    span = axes.span(result.seconds)
    return document(
        title,
        f"{span} of virtual time, seed {seed}, Moorage {__version__}",
        sections.figures(result, cost),
        sections.sections(result, explanations, cost),
        "Shares are of what pods request, not of what they use. Times are virtual.",
    )


def document(
    title: str,
    subtitle: str,
    figures: Sequence[tuple[str, str]],
    found: Iterable[tuple[str, str]],
    note: str,
) -> str:
    """An HTML document: figures with their names, then sections with title and body."""
    parts = [(re.sub(r"\W+", "-", name.lower()), name, body) for name, body in found]
    links = (tag("a", html.text(name), href=f"#{anchor}") for anchor, name, _ in parts)
    header = tag(
        "header",
        tag("h1", html.text(title)),
        tag("p", html.text(subtitle)),
        tag("nav", *links, aria_label="Sections"),
    )
    body = (
        tag("section", tag("h2", html.text(name), id=anchor), inner)
        for anchor, name, inner in parts
    )
    main = tag("main", sections.tiles(figures), *body)
    footer = tag("footer", tag("p", note))
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.text(title)}</title>",
            f"<style>{_file('style.css')}</style>",
            "</head>",
            f"<body>{header}{main}{footer}",
            f"<script>{_file('script.js')}</script>",
            "</body>",
            "</html>",
            "",
        )
    )


def _file(name: str) -> str:
    return resources.files("moorage.reporting").joinpath(name).read_text(encoding="utf-8")
