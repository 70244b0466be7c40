"""The answers to planning questions on a terminal: `show` has a form for each type of answer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import singledispatch
from pathlib import Path

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import ConsolePage
from moorage.planning import prices
from moorage.planning.add_nodes import AddedNodes
from moorage.planning.capacity import Capacity
from moorage.planning.cheapest_mix import MixCost
from moorage.planning.compact import Compaction
from moorage.planning.compare import Comparison, ConfigOutcome, Moves
from moorage.planning.drain import DrainResult, RemainingPod
from moorage.planning.gangs import GangCapacity
from moorage.planning.pod_sets import PodSetCapacity
from moorage.planning.queue_changes import QueueEffect, QueueFigures
from moorage.planning.replay import Replay, Rerun
from moorage.planning.what_if import WhatIfAnswer
from moorage.reporting import axes
from moorage.sim.results.result import by_reason, percentile

MOST_MOVES = 30
MOST_COMPARED_MOVES = 10
LONGEST_LINE = 400
SHARES = (
    ("utilisation", "{} requested"),
    ("imbalance", "{} imbalance"),
    ("fragmentation", "{} fragmented"),
)


@singledispatch
def show(answer: object, skipped: Counter[str], *, show_all: bool) -> None:
    """Print an answer, and mention the objects that were skipped."""
    raise TypeError(type(answer))


# Capacity


@show.register
def _(answer: Capacity, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    page.put(_capacity_headline(answer))
    if answer.pending_before:
        _show_pending_before(page, answer.pending_before)
    page.section()
    page.put(_pools(answer))
    if answer.unusable:
        page.section("Nodes on which none fits")
        page.put(_counts(answer.unusable.items()))
        page.claims_hint(answer.unusable)
    if show_all and answer.nodes:
        page.section(f"{texts.count(len(answer.nodes), 'node', 'get')} some")
        page.put(_counts(sorted(answer.nodes.items(), key=lambda item: (-item[1], item[0]))))
    page.skipped(skipped)


def _show_pending_before(page: ConsolePage, pods: int) -> None:
    of_cluster = texts.count(pods, "pod of the cluster", "are")
    page.note(f"{of_cluster} pending")


def _capacity_headline(answer: Capacity) -> Text:
    if not answer.fits:
        text = Text(f"No more of {answer.pod} fits: {answer.message}")
        text.highlight_words(["No more"], output.BAD)
        return text
    return _fitting(answer, f"{answer.fits:,} more of {answer.pod} {_fit(answer)}")


def _fit(answer: Capacity | PodSetCapacity | GangCapacity) -> str:
    return texts.verb(answer.fits, "fit")


def _fitting(answer: Capacity | PodSetCapacity, opening: str, pod: str = "") -> Text:
    """How many fit, and what runs out first; `pod` is the one that is rejected, if of several."""
    text = Text(f"At least {opening}" if answer.is_limited else opening)
    if answer.is_limited:
        text.append("; the counting stopped there.")
    elif answer.first:
        nodes = texts.count(answer.runs_out[answer.first], "node")
        text.append(f". Runs out first: {answer.first}{pod and f' for {pod}'} (on {nodes}).")
    else:
        text.append(f". Then{pod and f' {pod}'}: {answer.message}")
    text.highlight_regex(r"^(At least )?[\d,]+ (more|sets?)", output.GOOD)
    text.highlight_words([answer.first], output.BAD)
    return text


def _pools(answer: Capacity) -> Table:
    table = output.table("pool", numbers=["nodes", "usable"])
    table.add_column("fit", justify="right", no_wrap=True, style=output.GOOD)
    table.add_column("runs out", overflow="fold")
    for pool in answer.pools:
        lacking = ", ".join(f"{reason} ({nodes:,})" for reason, nodes in pool.runs_out.items())
        table.add_row(
            pool.name, f"{pool.nodes:,}", f"{pool.usable:,}", f"{pool.fits:,}", Text(lacking)
        )
    return table


@show.register
def _(answer: GangCapacity, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    page.put(_gangs_headline(answer))
    if answer.pending_before:
        _show_pending_before(page, answer.pending_before)
    if answer.next is not None and answer.next.placements:
        page.section("The next gang")
        for line in answer.next.lines:
            page.note(line)
    if answer.fits:
        page.section()
    if answer.fits and answer.shape.topology_key:
        page.put(_counted(answer.shape.topology_key, "gangs", answer.placements))
    elif answer.fits:
        page.put(_counted("pool", "pods of gangs", answer.pools))
    if show_all and answer.nodes:
        page.section(f"{texts.count(len(answer.nodes), 'node', 'get')} pods")
        page.put(_counts(sorted(answer.nodes.items(), key=lambda item: (-item[1], item[0]))))
    page.skipped(skipped)


def _gangs_headline(answer: GangCapacity) -> Text:
    size, key = answer.shape.size, answer.shape.topology_key
    gangs = f"of {texts.count(size, 'pod')} like {answer.pod}"
    gangs += f", each in one {key}," if key else ""
    if not answer.fits:
        text = Text(f"No gangs {gangs} fit: a gang {answer.message.rstrip('.')}.")
        text.highlight_words(["No"], output.BAD)
        return text
    least = "At least " if answer.is_limited else ""
    text = Text(f"{least}{texts.count(answer.fits, 'gang')} {gangs} {_fit(answer)}")
    more = "; the counting stopped there." if answer.is_limited else "."
    text.append(f"{more}" if not answer.message else f". The next one {answer.message}.")
    text.highlight_regex(r"^(At least )?[\d,]+", output.GOOD)
    return text


def _counted(name: str, what: str, counts: Mapping[str, int]) -> Table:
    table = output.table(name)
    table.add_column(what, justify="right", style=output.GOOD)
    for each, count in counts.items():
        table.add_row(each, f"{count:,}")
    return table


@show.register
def _(answer: PodSetCapacity, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    page.put(_sets_headline(answer))
    if answer.pending_before:
        _show_pending_before(page, answer.pending_before)
    page.section()
    table = output.table("pod", numbers=["per set", "in sets"])
    table.add_column("alone", justify="right", no_wrap=True, style=output.GOOD)
    table.add_column("runs out first, alone", overflow="fold")
    for each in answer.alone:
        per_set = answer.pods[each.pod]
        row = (f"{per_set:,}", f"{per_set * answer.fits:,}", f"{each.fits:,}")
        table.add_row(answer.title(each.pod), *row, Text(each.first or each.message))
    page.put(table)
    page.section()
    page.put(_set_pools(page, answer))
    if answer.unusable:
        page.section(f"Nodes on which no {answer.title(answer.rejected)} fits")
        page.put(_counts(answer.unusable.items()))
        page.claims_hint(answer.unusable)
    if show_all and answer.nodes:
        page.section(f"{texts.count(len(answer.nodes), 'node', 'get')} some")
        page.pairs(
            (node, ", ".join(f"{count:,} {answer.title(pod)}" for pod, count in counts.items()))
            for node, counts in answer.nodes.items()
        )
    page.skipped(skipped)


def _set_pools(page: ConsolePage, answer: PodSetCapacity) -> Table:
    """The pods of sets by pool: with a column for each pod or, if that is too wide, each pool."""
    pods = {pod: answer.title(pod) for pod in answer.pods}
    table = output.table("pool", numbers=pods.values())
    for pool, counts in answer.pools.items():
        table.add_row(pool, *(f"{counts.get(pod, 0):,}" for pod in pods))
    if page.measure(table) <= page.width:
        return table
    table = output.table("pod", numbers=answer.pools)
    for pod, title in pods.items():
        table.add_row(title, *(f"{counts.get(pod, 0):,}" for counts in answer.pools.values()))
    if page.measure(table) <= page.width:
        return table
    table = output.table("pod", "pool", numbers=["in sets"])
    for pod, title in pods.items():
        for pool, counts in answer.pools.items():
            if number := counts.get(pod):
                table.add_row(title, pool, f"{number:,}")
    return table


def _sets_headline(answer: PodSetCapacity) -> Text:
    sets = texts.count(answer.fits, "set")
    each = ", ".join(f"{count:,} {answer.title(pod)}" for pod, count in answer.pods.items())
    rejected = answer.title(answer.rejected)
    if not answer.fits:
        text = Text(f"No set fits ({each}). {rejected}: {answer.message}")
        text.highlight_words(["No set"], output.BAD)
        return text
    return _fitting(answer, f"{sets} {_fit(answer)} ({each})", rejected)


def _counts(counts: Iterable[tuple[str, int]]) -> Table:
    items = output.items()
    for name, count in counts:
        items.add_row(f"{count:,}", Text(name))
    return items


# Drain


@show.register
def _(answer: DrainResult, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    pending = {move.pod: move.message for move in answer.pending} | answer.displaced
    page.put(_drain_headline(answer, len(pending)))
    moved = [(move.pod, f"{move.source} -> {move.to}") for move in answer.moves if move.to]
    if moved:
        page.section(texts.count(len(moved), "pod", "move"))
        page.pairs(moved, None if show_all else MOST_MOVES)
    _show_reasons(page, "without a node", pending)
    _show_reasons(page, "blocked by disruption budgets", _reasons(answer.blocked))
    _show_reasons(page, "lost", _reasons(answer.lost))
    if answer.evictions:
        page.section(f"{texts.count(len(answer.evictions), 'pod')} preempted")
        page.pairs((each.pod, f"for {each.by} on {each.node}") for each in answer.evictions)
    _show_reasons(page, "not evicted", _reasons(answer.stays))
    page.skipped(skipped)


def _drain_headline(answer: DrainResult, pending: int) -> Text:
    moved = len(answer.moves) - len(answer.pending)
    counts = {
        "pending": pending,
        "blocked": len(answer.blocked),
        "lost": len(answer.lost),
        "not evicted": len(answer.stays),
    }
    parts = [f"{moved:,} moved", *(f"{count:,} {name}" for name, count in counts.items() if count)]
    rounds = texts.count(answer.rounds, "round")
    drained = texts.listed(answer.nodes, 60)
    text = Text(f"Draining {drained}, in {rounds}: {', '.join(parts)}.")
    text.highlight_regex(r"[\d,]+ moved", output.GOOD)
    text.highlight_regex(r"[\d,]+ (pending|held up|lost)", output.BAD)
    return text


def _reasons(pods: Iterable[RemainingPod]) -> dict[str, str]:
    return {each.pod: each.reason for each in pods}


def _show_reasons(page: ConsolePage, what: str, reasons: Mapping[str, str]) -> None:
    if reasons:
        page.section(f"{texts.count(len(reasons), 'pod')} {what}")
        page.reasons(by_reason(reasons))


# What if


@show.register
def _(answer: WhatIfAnswer, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    counts = {
        "placed": len(answer.placed),
        "moved": len(answer.moved),
        "pending": len(answer.pending),
        "lost": len(answer.lost),
        "blocked": len(answer.blocked),
    }
    parts = [f"{count:,} {name}" for name, count in counts.items() if count]
    nodes = _changed_nodes(answer)
    same = f"no {'other ' if nodes else ''}difference"
    text = Text(f"With these changes: {', '.join([*nodes, *(parts or [same])])}.")
    text.highlight_regex(r"[\d,]+ (placed|moved)", output.GOOD)
    text.highlight_regex(r"[\d,]+ (pending|lost|blocked)", output.BAD)
    page.put(text)
    page.note(
        f"{answer.pending_before:,} pending without the changes, {answer.pending_after:,} with them"
    )
    if answer.cost is not None:
        before, after = answer.cost.before.per_hour, answer.cost.after.per_hour
        sign = "+" if after >= before else "-"
        page.note(
            f"{prices.text(before)} per hour without the changes, {prices.text(after)} with them "
            f"({sign}{prices.text(abs(after - before))})"
        )
        if unpriced := len(answer.cost.after.unpriced):
            page.note(f"{texts.count(unpriced, 'node')} without a price not counted")
    if answer.queues:
        page.section("Queues")
        page.put(_queue_effects(answer.queues))
    most = None if show_all else MOST_MOVES
    if answer.placed:
        page.section(f"{texts.count(len(answer.placed), 'pod')} placed")
        page.pairs(answer.placed.items(), most)
    if answer.moved:
        page.section(f"{texts.count(len(answer.moved), 'pod')} on another node")
        page.pairs([(pod, f"{old} -> {new}") for pod, (old, new) in answer.moved.items()], most)
    _show_reasons(page, "without a node", answer.pending)
    _show_reasons(page, "blocked by disruption budgets", answer.blocked)
    _show_reasons(page, "lost", answer.lost)
    page.skipped(skipped)


def _changed_nodes(answer: WhatIfAnswer) -> list[str]:
    parts = []
    if answer.nodes_added:
        text = texts.count(len(answer.nodes_added), "more node")
        if answer.daemons_added:
            text += f" with {texts.count(answer.daemons_added, 'DaemonSet pod')}"
        parts.append(text)
    if answer.nodes_removed:
        parts.append(texts.count(len(answer.nodes_removed), "node") + " removed")
    return parts


def _queue_effects(effects: Sequence[QueueEffect]) -> Table:
    """Two rows per queue: without and with the changes."""
    has_waits = any(each.after.waits is not None for each in effects)
    waits = ["mean wait", "longest"] if has_waits else []
    heads = ["entitled", "share", "on nodes", "pending", "reclaimed", *waits]
    table = output.table("queue", "", numbers=heads)
    for each in effects:
        reclaimed = f"{each.reclaimed:,}" if each.reclaimed else ""
        table.add_row(each.name, "before", *_queue_row(each.before, "", has_waits=has_waits))
        table.add_row("", "after", *_queue_row(each.after, reclaimed, has_waits=has_waits))
    return table


def _queue_row(figures: QueueFigures, reclaimed: str, *, has_waits: bool) -> list[str]:
    row = [f"{figures.entitled:.0%}", f"{figures.share:.0%}"]
    row += [f"{figures.running:,}", f"{figures.pending:,}", reclaimed]
    waits = figures.waits
    if has_waits and waits is not None and waits.count:
        return [*row, axes.span(waits.mean), axes.span(waits.max)]
    return [*row, "-", "-"] if has_waits else row


# Added nodes


@show.register
def _(answer: AddedNodes, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    page.put(_added_headline(answer))
    if answer.total:
        page.section()
        table = output.table("template")
        table.add_column("nodes", justify="right", style=output.GOOD)
        cost = answer.cost
        if cost is None:
            for name, count in answer.counts.items():
                table.add_row(name, f"{count:,}")
        else:
            table.add_column("each", justify="right")
            table.add_column("per hour", justify="right")
            for name, count in answer.counts.items():
                each = cost.prices[name]
                table.add_row(name, f"{count:,}", prices.text(each), prices.text(each * count))
        page.put(table)
        page.note(_bound(answer) if cost is None else _cost_bound(cost, answer.tries))
    if answer.impossible:
        page.section(f"{texts.count(len(answer.impossible), 'pod')} that fit on no template")
        pods_of: dict[str, list[str]] = {}
        for pod, reason in answer.impossible.items():
            pods_of.setdefault(reason, []).append(pod)
        page.reasons(pods_of.items())
    if show_all and answer.placements:
        page.section(f"{texts.count(len(answer.placements), 'pod')} placed")
        page.pairs(answer.placements.items())
    page.skipped(skipped)


def _added_headline(answer: AddedNodes) -> Text:
    if not answer.pending_before:
        return Text("All pods fit: no new node is needed.", output.GOOD)
    without = f"{texts.count(answer.pending_before, 'pod')} had no node"
    if not answer.placements:
        fit = "it fits" if answer.pending_before == 1 else "they fit"
        return Text(f"{without}, and {fit} on no template.", output.BAD)
    more = texts.count(answer.total, "more node")
    cost = "" if answer.cost is None else f" for {prices.text(answer.cost.per_hour)} per hour"
    are = texts.verb(answer.total, "are")
    some = f" for {len(answer.placements):,} of them" if answer.impossible else ""
    text = Text(f"{without}; {more}{cost} {are} enough{some}.")
    text.highlight_regex(r"[\d,]+ more nodes?( for [\d,.]+ per hour)?", output.GOOD)
    return text


def _bound(answer: AddedNodes) -> str:
    if answer.is_optimal:
        return "fewer nodes are not enough, however pods are placed"
    tries, bound = texts.count(answer.tries, "try"), texts.count(answer.lower_bound, "node")
    return f"found in {tries}; by the sum of requests, at least {bound}"


def _cost_bound(cost: MixCost, tries: int) -> str:
    if cost.is_cheapest:
        return "no other mix of these templates costs less"
    at_least = prices.text(cost.lower_bound)
    return (
        f"a cheaper mix may exist: after {texts.count(tries, 'try')} it is known that every mix "
        f"costs at least {at_least} per hour; --tries N searches further"
    )


# Compaction


@show.register
def _(answer: Compaction, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    pods, nodes = texts.count(answer.pods, "pod"), texts.count(answer.nodes, "node")
    headline = Text(f"{pods} on {nodes} would fit on {answer.needed:,} ({answer.share:.0%}).")
    headline.highlight_regex(r"fit on [\d,]+", output.GOOD)
    page.put(headline)
    page.section()
    items = output.items()
    kept = list(answer.kept.values())
    for number, meaning in (
        (answer.needed, f"at the 90th percentile of {texts.count(len(kept), 'seed')}"),
        (percentile(kept, 50), "median"),
        (min(kept), "fewest"),
        (max(kept), "most"),
        (answer.lower_bound, "at least, by the sum of requests"),
    ):
        items.add_row(f"{number:,}", Text(meaning, output.DIM))
    page.put(items)
    if answer.left_out:
        page.section(f"{texts.count(len(answer.left_out), 'pod')} left out: they fit on no node")
        page.put(Text(texts.listed(list(answer.left_out), 3 * page.width), output.BAD))
    page.skipped(skipped)


# Comparison


@show.register
def _(answer: Comparison, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    pods = texts.count(len(answer.outcomes[0].placements), "pod")
    page.put(Text(f"{pods} with {len(answer.outcomes)} configurations:"))
    page.section()
    table = output.table("")
    for outcome in answer.outcomes:
        table.add_column(_short(outcome), justify="right", overflow="fold")
    for name, values in _figures(answer):
        table.add_row(name, *values)
    page.put(table)
    for outcome in answer.outcomes[1:]:
        moved = answer.moved(outcome)
        if moved:
            page.section(f"{texts.count(len(moved), 'pod')} on another node with {_short(outcome)}")
            page.pairs(_moves(moved), None if show_all else MOST_COMPARED_MOVES)
    page.skipped(skipped)


def _short(outcome: ConfigOutcome) -> str:
    return Path(outcome.name).name


def _figures(answer: Comparison) -> Iterator[tuple[str, list[str]]]:
    outcomes = answer.outcomes
    yield "pending", [f"{len(each.pending):,}" for each in outcomes]
    yield "evictions", [f"{each.evictions:,}" for each in outcomes]
    yield "moved", [f"{len(answer.moved(each)):,}" for each in outcomes]
    yield "spread violations", [f"{each.spread_violations:,}" for each in outcomes]
    yield "seconds", [f"{each.seconds:g}" for each in outcomes]
    for figure, label in SHARES:
        names = dict.fromkeys(name for each in outcomes for name in getattr(each, figure))
        for name in names:
            shares = [getattr(each, figure).get(name, 0.0) for each in outcomes]
            if name != "pods" and any(shares):
                yield label.format(name.rpartition("/")[2]), [f"{each:.1%}" for each in shares]


def _moves(moved: Moves) -> Iterator[tuple[str, str]]:
    for pod, (before, after) in moved.items():
        yield pod, f"{before or 'pending'} -> {after or 'pending'}"


# Replay


@show.register
def _(answer: Replay, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    if answer.difference is None:
        calls = texts.count(answer.calls, "call")
        page.put(Text(f"{calls} repeated: identical, byte for byte.", output.GOOD))
        return
    line, recorded, replayed = answer.difference
    page.put(Text(f"Line {line:,} differs.", output.BAD))
    for head, text in (("recorded", recorded), ("now", replayed)):
        page.section(head)
        page.put(Text(text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} ..."))


@show.register
def _(answer: Rerun, skipped: Counter[str], *, show_all: bool) -> None:
    page = ConsolePage()
    moved = texts.count(len(answer.moved), "pod")
    of_all = f"{moved} of {answer.pods:,} {texts.verb(len(answer.moved), 'are')}"
    page.put(Text(f"{of_all} on another node with this configuration."))
    page.section()
    table = output.table("", numbers=["recorded", "now"])
    table.add_row("pending", f"{answer.recorded_pending:,}", f"{len(answer.pending):,}")
    table.add_row("evictions", f"{answer.recorded_evictions:,}", f"{answer.evictions:,}")
    recorded, now = answer.recorded_waits, answer.waits
    table.add_row("bound", f"{recorded.count:,}", f"{now.count:,}")
    for name in ("p50", "p99", "max"):
        waits = [f"{getattr(each, name):,.3f} s" for each in (recorded, now)]
        table.add_row(f"wait, {name}", *waits)
    page.put(table)
    if answer.moved:
        page.section(f"{moved} on another node")
        page.pairs(_moves(answer.moved), None if show_all else MOST_MOVES)
