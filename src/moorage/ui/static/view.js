// What is shown, kept in the URL: #by=cpu&size=capacity&group=zone&q=text&node=name or &pod=namespace/name.
// `compare` is a node in the panel of a pod. `at` is the time of a recording in seconds. `what` has the changes of a what-if as a query string: remove=node-1&add=node-2:3.

const DEFAULTS = { by: "cpu", size: "", group: "topology.kubernetes.io/zone", q: "", node: "", pod: "", what: "", at: "", compare: "" };

export function current() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(
    Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]),
  );
}

// Every change is an entry of the history, except that of a text being typed.
export function change(changes, { replace = false } = {}) {
  const next = { ...current(), ...changes };
  const kept = Object.entries(next).filter(([name, value]) => value !== DEFAULTS[name]);
  const hash = `#${new URLSearchParams(kept)}`;
  if (hash === location.hash || (hash === "#" && !location.hash)) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  dispatchEvent(new Event("hashchange"));
}

export function changes() {
  return [...new URLSearchParams(current().what)];
}

export function setChanges(pairs) {
  change({ what: new URLSearchParams(pairs).toString(), node: "", pod: "" });
}
