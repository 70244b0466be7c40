"""YAML and JSON files, folders and dumps -> objects; errors name the file and the field.

    manifests.load(["cluster.yaml", "pods/", "-"]).everything
    manifests.read([{"apiVersion": "v1", "kind": "Node", ...}]).everything

Objects are validated once, here; all other code trusts them. `defaults` adds later what an API
server would. Kinds that no scheduler reads are counted and skipped.

    loading.py    paths or dicts in, objects out
    parsing.py    files, folders and standard input -> text; YAML documents
    json_parts.py JSON documents and the items of lists, without the whole text in memory
    reading.py    documents, and lists of them -> validated objects
    strict.py     unknown fields
    checks.py     unknown fields and rules of validity, once per equal spec
    errors.py     messages: location, object, field, problem
"""

from moorage.api.manifests.errors import Problem, shown
from moorage.api.manifests.loading import documents, from_dicts, load, load_whole, read
from moorage.api.manifests.reading import Manifest, Validate, decode, dump

__all__ = [
    "Manifest",
    "Problem",
    "Validate",
    "decode",
    "documents",
    "dump",
    "from_dicts",
    "load",
    "load_whole",
    "read",
    "shown",
]
