// The panels: pending pods by reason, a node, a pod with its explanation.

import { bar, count, element, link, more, table } from "./dom.js";
import { nodeForms, podForms, configurationForms } from "./what_if.js";

export function pendingPanel(pending, open, cluster) {
  const { groups, notExplained } = pending;
  return [
    element("h2", {}, pending.count ? count(pending.count, "pending pod") : "No pod is pending"),
    groups.map((group, index) => element("details", { open: index === 0 },
      element("summary", {}, `${count(group.count, "pod")}: ${group.reason}`),
      pods(group, open))),
    notExplained.count ? element("details", {},
      element("summary", {}, `${count(notExplained.count, "pod")}: not explained here`),
      pods(notExplained, open)) : null,
    pending.count && cluster.scorePlugins.length ? configurationForms(cluster.scorePlugins) : null,
  ];
}

export function podsPanel({ count: found, pods: listed }, open) {
  return [
    element("h2", {}, `${count(found, "pod")} found`),
    table(["pod", "node"], listed.map(({ pod, node }) => [
      link(pod, () => open({ pod, node: "" })), node ? link(node, () => open({ node, pod: "" })) : "pending"])),
    element("ul", {}, more(found - listed.length)),
  ];
}

function pods(group, open) {
  return element("ul", {},
    group.pods.map((pod) => element("li", {}, link(pod, () => open({ pod, node: "" })))),
    more(group.count - group.pods.length));
}

export function nodePanel(node, open) {
  const states = [node.cordoned ? "cordoned" : "", node.ready ? "" : "not ready"].filter(Boolean);
  return [
    close(open),
    element("h2", {}, node.name),
    states.length ? element("p", {}, `This node is ${states.join(" and ")}.`) : null,
    element("h3", {}, "Requested and free"),
    table(["resource", "requested", "allocatable", "free", ""], node.resources.map((each) => [
      each.name, each.requestedText, each.allocatableText, each.freeText,
      bar([each.allocatable ? each.requested / each.allocatable : 0],
        `${each.name}: ${each.requestedText} of ${each.allocatableText} requested`)])),
    node.taints.length ? element("h3", {}, "Taints") : null,
    tags(node.taints.map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`)),
    element("h3", {}, count(node.podCount, "pod")),
    table(["pod", "priority", "share", "requests"], node.pods.map((each) => [
      link(each.pod, () => open({ pod: each.pod })), each.priority,
      `${(100 * each.share).toFixed(1)} %`,
      Object.entries(each.requests).map(([name, amount]) => `${name} ${amount}`).join(", ")])),
    element("ul", {}, more(node.podCount - node.pods.length)),
    element("div", { id: "history" }),
    ...labels(node.labels),
    nodeForms(node),
  ];
}

function labels(given) {
  const texts = Object.entries(given).map(([key, value]) => `${key}=${value}`);
  return texts.length ? [element("h3", {}, "Labels"), tags(texts)] : [];
}

function tags(texts) {
  return element("ul", { class: "tags" }, texts.map((text) => element("li", {}, text)));
}

export function close(open) {
  return link("← Pending pods", () => open({ pod: "", node: "" }));
}

export function podPanel(pod, open, cluster) {
  if (pod.gone) return [close(open), element("h2", {}, pod.pod), element("p", { class: "headline" }, pod.headline)];
  const node = (name) => link(name, () => open({ node: name, pod: "", compare: "" }));
  return [
    close(open),
    element("h2", {}, pod.pod),
    element("p", { class: "headline" }, pod.headline),
    element("p", { class: "quiet" }, `Priority ${pod.priority.toLocaleString("en")}; requests `,
      Object.entries(pod.requests).map(([name, amount]) => `${name} ${amount}`).join(", ") || "nothing",
      pod.node ? "; runs on " : "", pod.node ? node(pod.node) : ""),
    ...funnel(pod),
    pod.advice.length ? element("h3", {}, "Details") : null,
    element("ul", { class: "lines" }, pod.advice.map((line) => element("li", {}, line))),
    ...scores(pod.scores, node, pod.picked),
    ...comparison(pod, open),
    ...rejections(pod.rejections, node),
    ...preemption(pod.preemption, node),
    element("div", { id: "history" }),
    ...labels(pod.labels),
    podForms(pod, Object.keys(cluster.taints)),
  ];
}

function funnel({ nodes, funnel: steps }) {
  if (!steps.length) return [];
  const row = (name, left, rejected) => [
    name, left, rejected,
    bar([nodes ? left / nodes : 0], `${count(left, "node")} left after ${name}`)];
  const found = table(["after", "nodes left", "rejected", ""],
    [row("all nodes", nodes, 0),
      ...steps.map((step) => row(step.plugin || "pre_filter", step.left, step.rejected))]);
  found.id = "funnel";
  return [element("h3", {}, "Nodes left after each plugin"), found];
}

function scores({ plugins, equal, nodes }, node, picked) {
  if (!nodes.length) return [];
  const sum = (each) => plugins.reduce((total, name) => total + each.scores[name], 0);
  const most = Math.max(1, ...nodes.map(sum));
  const byPlugin = (each) => {
    const text = plugins.map((name) => `${name} ${each.scores[name]}`).join(", ");
    return element("div", {}, bar(plugins.map((name) => each.scores[name] / most), text),
      element("span", { class: "quiet" }, text));
  };
  const found = table(plugins.length ? ["node", "total", "by plugin"] : ["node", "total"],
    nodes.map((each) => [
      element("span", {}, node(each.node), each.node === picked ? " (selected)" : ""), each.total,
      ...(plugins.length ? [byPlugin(each)] : [])]));
  found.id = "scores";
  const same = Object.entries(equal).map(([name, score]) => `${name} ${score}`).join(", ");
  return [element("h3", {}, "Scores of the best nodes"), found,
    same ? element("p", { class: "quiet" }, `The same for all: ${same}`) : null];
}

// Any node compared with the selected one; the name is typed, there may be thousands.
function comparison({ picked, compared, nodes }, open) {
  if (!nodes) return [];
  const input = element("input", { id: "compare", value: compared?.node ?? "", autocomplete: "off", spellcheck: false,
    "aria-label": "Name of a node", placeholder: "name of a node" });
  const form = element("form", { class: "form", onsubmit: (event) => {
    event.preventDefault();
    open({ compare: input.value.trim() });
  } }, element("button", {}, picked ? `Compare with ${picked}` : "Why not this node?"), input);
  if (!compared) return [form];
  if (compared.reason) {
    return [form, element("p", { id: "compared" }, `${compared.node} was rejected: ${compared.reason}`,
      compared.plugin ? ` (${compared.plugin})` : "")];
  }
  const most = Math.max(1, ...compared.scores.flatMap((row) => [row.selected, row.node]));
  const scored = (points, name, plugin) => element("div", {}, String(points), bar([points / most], `${name}: ${plugin} ${points}`));
  const found = table(["plugin", picked, compared.node, "difference"], [
    ...compared.scores.map((row) => [row.plugin, scored(row.selected, picked, row.plugin),
      scored(row.node, compared.node, row.plugin), signed(row.node - row.selected)]),
    ["total", String(compared.selected ?? ""), String(compared.total ?? ""), signed((compared.total ?? 0) - (compared.selected ?? 0))]]);
  found.id = "compared";
  return [form, found];
}

const signed = (number) => (number > 0 ? `+${number}` : String(number));

function rejections(groups, node) {
  if (!groups.length) return [];
  return [element("h3", {}, "Rejected nodes"), ...groups.map((group) => element("details", { class: "rejection" },
    element("summary", {}, `${count(group.count, "node")}: ${group.reason}${group.plugin ? ` (${group.plugin})` : ""}`),
    element("ul", {}, group.nodes.map((name) => element("li", {}, node(name))),
      more(group.count - group.nodes.length))))];
}

function preemption({ message, nominated, count: total, candidates }, node) {
  if (!total) return message ? [element("h3", {}, "Preemption"), element("p", {}, message)] : [];
  return [element("h3", {}, `Preemption is possible on ${count(total, "node")}`),
    table(["node", "victims"], candidates.map((each) => [
      element("span", {}, node(each.node), each.node === nominated ? " (nominated)" : ""),
      [...each.victims, each.harm].filter(Boolean).join(", ")]))];
}

// Lines of a pod, or of a node with the pods; `clock` makes a text of the seconds of a line.
export function historyPart(lines, clock, open) {
  if (!lines.length) return [];
  const ofNode = "pod" in lines[0];
  const pod = (key) => link(key, () => open({ pod: key, node: "" }));
  return [element("h3", {}, ofNode ? "Recent decisions" : "History"),
    table(["time", ...(ofNode ? ["pod"] : []), "", "details"], lines.map(({ at, what, text, ...more }) => [
      clock(at), ...(ofNode ? [pod(more.pod)] : []), what, text]))];
}
