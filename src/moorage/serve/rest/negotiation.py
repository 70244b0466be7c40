"""In which form an answer is wanted: JSON as it is, as a Table, or metadata alone."""

from typing import NamedTuple

from moorage.serve.refusals import NotAcceptable

_JSON = ("application/json", "application/*", "*/*")


class Form(NamedTuple):
    """A form of an answer; `as_` is empty for the plain one."""

    as_: str = ""
    group: str = ""
    version: str = ""


PLAIN = Form()


def wanted(accept: str, offered: tuple[Form, ...]) -> Form:
    """The first form in an Accept header that is offered; plain JSON always is."""
    if not accept:
        return PLAIN
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _JSON:
            continue
        given = dict(part.split("=", 1) for part in parameters if "=" in part)
        form = Form(given.get("as", ""), given.get("g", ""), given.get("v", ""))
        if not form.as_:
            return PLAIN
        if form in offered:
            return form
    raise NotAcceptable(
        "only the following media types are accepted: application/json (without protobuf, CBOR)"
    )


TABLE = Form("Table", "meta.k8s.io", "v1")
PARTIAL = Form("PartialObjectMetadata", "meta.k8s.io", "v1")
PARTIAL_LIST = Form("PartialObjectMetadataList", "meta.k8s.io", "v1")
OBJECT_FORMS = (TABLE, PARTIAL, PARTIAL_LIST)
DISCOVERY_V2 = Form("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
