"""Record the answers of a real kube-apiserver: python -m tests.api.validation.record URL TOKEN CA.

Creations are dry runs. For updates, objects are created, and the updates are dry runs.
"""

import json
import ssl
import sys
import time
import urllib.error
import urllib.request

from tests.api.validation import table

from moorage.cluster.resources import BUILT_IN

PATHS = {(each.api_version, each.kind): (each.plural, each.namespaced) for each in BUILT_IN} | {
    ("node.k8s.io/v1", "RuntimeClass"): ("runtimeclasses", False)
}


def main(url, token, authority):
    context = ssl.create_default_context(cafile=authority)

    def request(method, path, body=None):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        sent = urllib.request.Request(url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(sent, context=context) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def collection(obj):
        plural, namespaced = PATHS[obj["apiVersion"], obj["kind"]]
        root = "/api" if "/" not in obj["apiVersion"] else "/apis"
        namespace = obj["metadata"].get("namespace", "default")
        scope = f"/namespaces/{namespace}" if namespaced else ""
        return f"{root}/{obj['apiVersion']}{scope}/{plural}"

    found = {}
    for name, obj in table.created().items():
        found[name] = answer(*request("POST", collection(obj) + "?dryRun=All", obj))
    write(table.ANSWERS, found)
    found = {}
    for name, (given, obj, paths) in table.admitted().items():
        for each in given:
            request("POST", collection(each), each)
        time.sleep(1)  # Until admission has observed them.
        code, body = request("POST", collection(obj) + "?dryRun=All", obj)
        found[name] = {
            **answer(code, body),
            **({"shown": table.shown(body, paths)} if paths else {}),
        }
        for each in given:
            request("DELETE", f"{collection(each)}/{each['metadata']['name']}")
        time.sleep(1)
    write(table.ADMISSION_ANSWERS, found)
    found = {}
    for name, (obj, changes) in table.updated().items():
        path = collection(obj)
        one = f"{path}/{obj['metadata']['name']}"
        code, stored = request("POST", path, obj)
        if code >= 300:
            sys.exit(f"{name}: {stored['message']}")
        found[name] = answer(*request("PUT", one + "?dryRun=All", table.changed(stored, changes)))
        request("DELETE", one, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        _, left = request("GET", one)
        if left.get("metadata", {}).get("finalizers"):
            left["metadata"]["finalizers"] = []
            request("PUT", one, left)
    write(table.UPDATE_ANSWERS, found)


def answer(code, body):
    if code < 300:
        return {"code": code}
    details = body.get("details", {})
    causes = [
        {"field": each.get("field", ""), "reason": each["reason"], "message": each["message"]}
        for each in details.get("causes", ())
    ]
    return {"code": code, "message": body["message"], "causes": causes}


def write(file, found):
    lines = (f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
