"""How much of a resource the pod requests, and how much the nodes have free."""

from moorage import plugin as mp

INSUFFICIENT = "Insufficient "


def explain(rejection: mp.Rejection) -> str:
    """The amounts behind a shortage."""
    nodes = rejection.nodes
    is_one = len(nodes) == 1
    these = nodes[0].name if is_one else f"these {mp.texts.count(len(nodes), 'node')}"
    if not rejection.reason.startswith(INSUFFICIENT):
        limit = mp.texts.count(max(node.allocatable("pods") for node in nodes), "pod")
        return f"{these} {'takes' if is_one else 'take'} {limit} at most, and no more fit."
    resource = rejection.reason.removeprefix(INSUFFICIENT)
    requested = mp.requests.filter_request(rejection.pod).get(resource, 0)
    best = max(nodes, key=lambda node: _free(node, resource))
    request, free = mp.texts.two_amounts(requested, max(_free(best, resource), 0), resource)
    largest = max(node.allocatable(resource) for node in nodes)
    line = f"the pod asks for {request}; "
    if largest <= 0:
        return f"{line}{these} {'offers' if is_one else 'offer'} none."
    line += f"{'' if is_one else 'at most '}{free} is free on {best.name}."
    enough = [node.name for node in nodes if node.allocatable(resource) >= requested]
    if enough:
        they = "it" if len(enough) == 1 else "they"
        return f"{line} Large enough, were {they} less full: {mp.texts.listed(enough, 60)}."
    _, most = mp.texts.two_amounts(requested, largest, resource)
    even = f"it has only {most}" if is_one else f"none of these has more than {most}"
    return f"{line} Even empty, {even}."


def _free(node: mp.NodeInfo, resource: str) -> int:
    return node.allocatable(resource) - node.requested(resource)
