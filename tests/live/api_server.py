"""A minimal API server in memory, for tests of the live shell: list, watch, get, create, put,
patch, delete, bind, leases and Events, with Kubernetes' versions, conflicts and order.

    python api_server.py [--port 0] [--history 10000]    prints its address, and serves

It checks nothing that an admission controller would, and knows no roles. Trouble is made
elsewhere, by faulty_proxy.py, so that any API server can be put in this one's place.
"""

import argparse
import asyncio
import json
import time
from collections import deque
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from aiohttp import web

KINDS = {
    "namespaces": ("Namespace", "/api/v1", False),
    "nodes": ("Node", "/api/v1", False),
    "pods": ("Pod", "/api/v1", True),
    "services": ("Service", "/api/v1", True),
    "replicationcontrollers": ("ReplicationController", "/api/v1", True),
    "persistentvolumes": ("PersistentVolume", "/api/v1", False),
    "persistentvolumeclaims": ("PersistentVolumeClaim", "/api/v1", True),
    "replicasets": ("ReplicaSet", "/apis/apps/v1", True),
    "statefulsets": ("StatefulSet", "/apis/apps/v1", True),
    "poddisruptionbudgets": ("PodDisruptionBudget", "/apis/policy/v1", True),
    "storageclasses": ("StorageClass", "/apis/storage.k8s.io/v1", False),
    "csinodes": ("CSINode", "/apis/storage.k8s.io/v1", False),
    "csidrivers": ("CSIDriver", "/apis/storage.k8s.io/v1", False),
    "csistoragecapacities": ("CSIStorageCapacity", "/apis/storage.k8s.io/v1", True),
    "volumeattachments": ("VolumeAttachment", "/apis/storage.k8s.io/v1", False),
    "priorityclasses": ("PriorityClass", "/apis/scheduling.k8s.io/v1", False),
    "leases": ("Lease", "/apis/coordination.k8s.io/v1", True),
    "events": ("Event", "/apis/events.k8s.io/v1", True),
}
BOOKMARK_SECONDS = 1.0


class Refused(Exception):
    def __init__(self, code, reason, message):
        self.code, self.reason, self.message = code, reason, message

    def answer(self):
        return web.json_response(self.status(), status=self.code)

    def status(self):
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": self.reason,
            "message": self.message,
            "code": self.code,
        }


class Store:
    """Objects, and the history of their changes."""

    def __init__(self, history):
        self.version = 0
        self.objects = {plural: {} for plural in KINDS}
        self.history = {plural: deque(maxlen=history) for plural in KINDS}
        self.watchers = {plural: set() for plural in KINDS}
        self.binds = []  # Every binding that was carried out: (uid, node).
        self.requests = 0

    def note(self, plural, change, obj, before=None):
        """Record a change of an object and send it to all watches."""
        line = (self.version, change, obj, before)
        self.history[plural].append(line)
        for queue in self.watchers[plural]:
            queue.put_nowait(line)

    def get(self, plural, key):
        if key not in self.objects[plural]:
            raise Refused(404, "NotFound", f'{plural} "{key[1]}" not found')
        return self.objects[plural][key]

    def create(self, plural, namespace, obj):
        kind, root, namespaced = KINDS[plural]
        meta = obj.setdefault("metadata", {})
        if namespaced:
            meta["namespace"] = namespace or meta.get("namespace") or "default"
        key = (meta.get("namespace", ""), meta["name"])
        if key in self.objects[plural]:
            raise Refused(409, "AlreadyExists", f'{plural} "{meta["name"]}" already exists')
        self.version += 1
        meta.setdefault("uid", f"{kind.lower()}-{meta['name']}-{self.version}")
        meta["creationTimestamp"] = now()
        meta["resourceVersion"] = str(self.version)
        obj["kind"], obj["apiVersion"] = kind, root.removeprefix("/apis/").removeprefix("/api/")
        if plural == "pods":
            obj.setdefault("status", {}).setdefault("phase", "Pending")
            obj["spec"].setdefault("schedulerName", "default-scheduler")
        self.objects[plural][key] = obj
        self.note(plural, "ADDED", obj)
        return obj

    def replace(self, plural, key, obj):
        before = self.get(plural, key)
        self.version += 1
        meta = {**obj["metadata"], "uid": before["metadata"]["uid"]}
        meta["resourceVersion"] = str(self.version)
        obj = {**obj, "metadata": meta}
        self.objects[plural][key] = obj
        self.note(plural, "MODIFIED", obj, before)
        return obj

    def delete(self, plural, key):
        before = self.get(plural, key)
        del self.objects[plural][key]
        self.version += 1
        meta = {**before["metadata"], "resourceVersion": str(self.version)}
        self.note(plural, "DELETED", {**before, "metadata": meta}, before)
        return before

    def bind(self, key, binding):
        pod = self.get("pods", key)
        uid, node = binding["metadata"].get("uid"), binding["target"]["name"]
        if uid and uid != pod["metadata"]["uid"]:
            raise Refused(409, "Conflict", f'pods "{key[1]}": the UID in the precondition differs')
        if pod["spec"].get("nodeName"):
            text = f"pod {key[1]} is already assigned to node {pod['spec']['nodeName']!r}"
            raise Refused(409, "Conflict", text)
        self.binds.append((pod["metadata"]["uid"], node))
        self.replace("pods", key, {**pod, "spec": {**pod["spec"], "nodeName": node}})

    def patch_status(self, key, patch):
        pod = self.get("pods", key)
        uid = patch.get("metadata", {}).get("uid")
        if uid and uid != pod["metadata"]["uid"]:
            raise Refused(409, "Conflict", f'pods "{key[1]}": the UID in the precondition differs')
        status = dict(pod["status"])
        for name, value in patch.get("status", {}).items():
            if name == "conditions":
                changed = {each["type"]: each for each in value}
                kept = [c for c in status.get("conditions", ()) if c["type"] not in changed]
                status["conditions"] = kept + value
            elif value is None:
                status.pop(name, None)
            else:
                status[name] = value
        if status == pod["status"]:
            return pod
        return self.replace("pods", key, {**pod, "status": status})


def now():
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def selects(selector, obj):
    """Whether an object matches a field selector; only those that a scheduler uses."""
    for term in filter(None, selector.split(",")):
        path, _, value = term.partition("!=") if "!=" in term else term.partition("=")
        found = obj
        for step in path.split("."):
            found = (found or {}).get(step)
        if ((found or "") == value) is ("!=" in term):
            return False
    return True


class Api:
    def __init__(self, store):
        self.store = store

    async def handle(self, request):
        self.store.requests += 1
        try:
            return await self.route(request)
        except Refused as refused:
            return refused.answer()

    async def route(self, request):
        path = request.path
        if path == "/binds":
            return web.json_response(self.store.binds)
        if path == "/version":
            return web.json_response({"gitVersion": "v1.36.0-test"})
        for plural, (_, root, _) in KINDS.items():
            if not path.startswith(root + "/"):
                continue
            steps = path.removeprefix(root + "/").split("/")
            namespace = ""
            if steps[0] == "namespaces" and len(steps) > 2:
                namespace, steps = steps[1], steps[2:]
            if steps[0] == plural:
                return await self.answer(request, plural, namespace, *steps[1:])
        raise Refused(404, "NotFound", f"the server could not find {path}")

    async def answer(self, request, plural, namespace, name="", part="", *rest):
        store, method, key = self.store, request.method, (namespace, name)
        if part == "proxy":
            return self.proxy(namespace, name, rest)
        if method == "GET" and not name:
            parameters = dict(parse_qsl(request.query_string, keep_blank_values=True))
            if parameters.get("watch") in ("true", "1"):
                return await self.watch(request, plural, parameters)
            return self.list(plural, namespace, parameters)
        if method == "GET":
            return web.json_response(store.get(plural, key))
        body = await request.read()
        document = json.loads(body) if body else {}
        if part == "binding":
            store.bind(key, document)
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        if part == "status":
            return web.json_response(store.patch_status(key, document))
        if method == "POST":
            return web.json_response(store.create(plural, namespace, document), status=201)
        if method == "PUT":
            expected = document["metadata"].get("resourceVersion")
            if expected and expected != store.get(plural, key)["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", "the object has been modified")
            return web.json_response(store.replace(plural, key, document))
        if method == "PATCH":
            return web.json_response(
                store.replace(plural, key, merged(store.get(plural, key), document))
            )
        if method == "DELETE":
            uid = (document.get("preconditions") or {}).get("uid")
            if uid and uid != store.get(plural, key)["metadata"]["uid"]:
                raise Refused(409, "Conflict", "the UID in the precondition differs")
            return web.json_response(store.delete(plural, key))
        raise Refused(405, "MethodNotAllowed", method)

    def proxy(self, namespace, name, path):
        """What the process in a pod answers: its annotation of that name."""
        _, pod, port = name.split(":")
        annotations = self.store.get("pods", (namespace, pod))["metadata"].get("annotations", {})
        answer = annotations.get(f"{port}/{path[0]}")
        if answer is None:
            raise Refused(401, "Unauthorized", "Unauthorized")
        return web.Response(text=answer, content_type="application/json")

    def list(self, plural, namespace, parameters):
        kind, *_ = KINDS[plural]
        chosen = [
            obj
            for (space, _), obj in self.store.objects[plural].items()
            if (not namespace or space == namespace)
            and selects(parameters.get("fieldSelector", ""), obj)
        ]
        start, limit = int(parameters.get("continue") or 0), int(parameters.get("limit") or 0)
        page = chosen[start : start + limit] if limit else chosen[start:]
        meta = {"resourceVersion": str(self.store.version)}
        if limit and start + limit < len(chosen):
            meta["continue"] = str(start + limit)
        document = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta, "items": page}
        return web.json_response(document)

    async def watch(self, request, plural, parameters):
        store, selector = self.store, parameters.get("fieldSelector", "")
        since = int(parameters.get("resourceVersion") or 0)
        history = store.history[plural]
        if len(history) == history.maxlen and history[0][0] > since + 1:
            raise Refused(410, "Expired", f"too old resource version: {since}")
        queue = asyncio.Queue()
        for line in history:
            if line[0] > since:
                queue.put_nowait(line)
        store.watchers[plural].add(queue)
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        try:
            ends_at = time.monotonic() + float(parameters.get("timeoutSeconds") or 60)
            while (left := ends_at - time.monotonic()) > 0:
                try:
                    lines = [await asyncio.wait_for(queue.get(), min(left, BOOKMARK_SECONDS))]
                except TimeoutError:
                    await answer.write(bookmark(plural, store.version))
                    continue
                while not queue.empty():
                    lines.append(queue.get_nowait())
                await answer.write(b"".join(event(line, selector) for line in lines))
        except (ConnectionResetError, asyncio.CancelledError):
            pass
        finally:
            store.watchers[plural].discard(queue)
        return answer


def event(line, selector):
    """A change as a watch with a selector sees it: an object that stops matching is deleted."""
    _, change, obj, before = line
    is_in = selects(selector, obj)
    was_in = before is not None and selects(selector, before)
    if change == "MODIFIED":
        change = "MODIFIED" if is_in and was_in else "ADDED" if is_in else "DELETED"
        if not is_in and not was_in:
            return b""
    elif (change == "DELETED" and not was_in) or (change == "ADDED" and not is_in):
        return b""
    return json.dumps({"type": change, "object": obj}).encode() + b"\n"


def bookmark(plural, version):
    obj = {"kind": KINDS[plural][0], "metadata": {"resourceVersion": str(version)}}
    return json.dumps({"type": "BOOKMARK", "object": obj}).encode() + b"\n"


def merged(old, patch):
    if not (isinstance(old, dict) and isinstance(patch, dict)):
        return patch
    both = {**old, **{name: merged(old.get(name), value) for name, value in patch.items()}}
    return {name: value for name, value in both.items() if value is not None}


def application_of(store):
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", Api(store).handle)
    return app


async def serve(app, port):
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    return runner, site._server.sockets[0].getsockname()[1]


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--history", type=int, default=10_000)
    arguments = parser.parse_args()
    _, port = await serve(application_of(Store(arguments.history)), arguments.port)
    print(f"http://127.0.0.1:{port}", flush=True)  # noqa: T201  # read by the parent process
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
