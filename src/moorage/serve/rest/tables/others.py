"""Everything else that has columns of its own."""

from typing import Any

from moorage.serve import timestamps
from moorage.serve.controllers.objects import Object
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.cells import NONE, UNKNOWN, Column, at, maps, number, text, wide

AGE_COLUMNS = (Column("Age"),)
NAMESPACE_COLUMNS = (Column("Status"), Column("Age"))
SERVICE_COLUMNS = (
    Column("Type"),
    Column("Cluster-IP"),
    Column("External-IP"),
    Column("Port(s)"),
    Column("Age"),
    wide("Selector"),
)
ENDPOINTS_COLUMNS = (Column("Endpoints"), Column("Age"))
DATA_COLUMNS = (Column("Data", "integer"), Column("Age"))
SECRET_COLUMNS = (Column("Type"), Column("Data", "integer"), Column("Age"))
LEASE_COLUMNS = (Column("Holder"), Column("Age"))
PRIORITY_CLASS_COLUMNS = (
    Column("Value", "integer"),
    Column("Global-Default", "boolean"),
    Column("Age"),
    Column("PreemptionPolicy"),
)
DEFINITION_COLUMNS = (Column("Created At", "date"),)
# An event has no column for its name but a wide one, at the end.
EVENT_COLUMNS = (
    Column("Last Seen"),
    Column("Type"),
    Column("Reason"),
    Column("Object"),
    wide("Subobject"),
    wide("Source"),
    Column("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
)


def age(obj: Object, now: float) -> list[Any]:
    """The one cell that every object has."""
    return [cells.age(at(obj, "metadata", "creationTimestamp"), now)]


def namespace(obj: Object, now: float) -> list[Any]:
    """A namespace's cells."""
    return [text(obj, "status", "phase"), *age(obj, now)]


def service(obj: Object, now: float) -> list[Any]:
    """A service's cells."""
    ports = []
    for each in maps(obj, "spec", "ports"):
        node_port = f":{each['nodePort']}" if each.get("nodePort") else ""
        ports.append(f"{text(each, 'port')}{node_port}/{text(each, 'protocol')}")
    external = at(obj, "spec", "externalIPs")
    if text(obj, "spec", "type") == "LoadBalancer" and not external:
        addresses = maps(obj, "status", "loadBalancer", "ingress")
        shown = ",".join(text(each, "ip") for each in addresses) or "<pending>"
    else:
        shown = cells.joined(external)
    return [
        text(obj, "spec", "type", otherwise="ClusterIP"),
        text(obj, "spec", "clusterIP", otherwise=NONE),
        shown,
        ",".join(ports) or NONE,
        *age(obj, now),
        cells.selector(at(obj, "spec", "selector")),
    ]


def endpoints(obj: Object, now: float) -> list[Any]:
    """The cells of a service's endpoints."""
    found = []
    for subset in maps(obj, "subsets"):
        for address in maps(subset, "addresses"):
            ports = maps(subset, "ports") or [{}]
            for port in ports:
                tail = f":{port['port']}" if "port" in port else ""
                found.append(f"{text(address, 'ip')}{tail}")
    return [",".join(found) or NONE, *age(obj, now)]


def data(obj: Object, now: float) -> list[Any]:
    """A config map's cells."""
    count = sum(
        len(value) for field in ("data", "binaryData") if isinstance(value := at(obj, field), dict)
    )
    return [count, *age(obj, now)]


def secret(obj: Object, now: float) -> list[Any]:
    """A secret's cells."""
    return [text(obj, "type"), *data(obj, now)]


def lease(obj: Object, now: float) -> list[Any]:
    """A lease's cells."""
    return [text(obj, "spec", "holderIdentity"), *age(obj, now)]


def priority_class(obj: Object, now: float) -> list[Any]:
    """A priority class' cells."""
    return [
        number(obj, "value"),
        at(obj, "globalDefault") is True,
        *age(obj, now),
        text(obj, "preemptionPolicy"),
    ]


def definition(obj: Object, now: float) -> list[Any]:
    """A definition's cells."""
    del now
    return [text(obj, "metadata", "creationTimestamp")]


def event(obj: Object, now: float) -> list[Any]:
    """An event's cells, its name among them; it may have come by either door."""
    about = at(obj, "involvedObject") or at(obj, "regarding") or {}
    first = at(obj, "firstTimestamp") or at(obj, "deprecatedFirstTimestamp")
    last = at(obj, "lastTimestamp") or at(obj, "deprecatedLastTimestamp")
    exact = at(obj, "eventTime")
    series = at(obj, "series")
    count = number(obj, "count") or number(obj, "deprecatedCount") or 1
    if isinstance(series, dict):
        last = at(series, "lastObservedTime") or last
        count = number(series, "count") or count
    first_age = cells.age(first or exact, now)
    last_age = cells.age(last, now) if timestamps.to_seconds(last) else first_age
    source = at(obj, "source") or at(obj, "deprecatedSource") or {}
    reporter = text(obj, "reportingComponent") or text(obj, "reportingController")
    words = [text(source, "component", otherwise=reporter), text(source, "host")]
    return [
        last_age,
        text(obj, "type"),
        text(obj, "reason"),
        f"{text(about, 'kind').lower()}/{text(about, 'name')}",
        text(about, "fieldPath"),
        ", ".join(word for word in words if word),
        (text(obj, "message") or text(obj, "note")).strip(),
        first_age if first_age != UNKNOWN else last_age,
        str(count),
        text(obj, "metadata", "name"),
    ]
