"""YAML and JSON files, folders and dumps -> objects; complaints say which file and where.

    manifests.load(["cluster.yaml", "pods/", "-"]).everything
    manifests.read([{"apiVersion": "v1", "kind": "Node", ...}]).everything

Objects are checked for shape, names and quantities, once, here; everybody behind trusts them.
What an API server would fill in is added later, by `defaults`. Kinds that no scheduler reads are
counted and left out. The way of a file, room by room:

    loading.py      paths or dicts in, objects out; is it JSON or YAML?
    files.py        files, folders and standard input as bytes
    json_text.py    JSON documents, one after the other
    yaml_text.py    YAML documents, as Kubernetes reads them
    reading.py      a document, or a list of them, as objects of their kinds
    whole.py        the same, but nothing is left out
    decoding.py     plain data as an object, and back
    collection.py   what was found: named, checked, none of it twice
    complaints.py   where, who, and what is wrong
    faults.py       msgspec's complaints in our words
"""

from moorage.api.manifests.collection import Manifest, fault_of
from moorage.api.manifests.complaints import shown
from moorage.api.manifests.decoding import decode, dump
from moorage.api.manifests.loading import documents, from_dicts, load, load_whole, read

__all__ = [
    "Manifest",
    "decode",
    "documents",
    "dump",
    "fault_of",
    "from_dicts",
    "load",
    "load_whole",
    "read",
    "shown",
]
