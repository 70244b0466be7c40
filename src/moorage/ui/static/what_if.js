// What if: forms in the panels, the list of changes, and the differences that they make.

import { count, element, link, more, table } from "./dom.js";
import { changes, setChanges } from "./view.js";

const NAMES = {
  weight: "weight of",
  add: "add nodes", pods: "add pods", requests: "change requests", tolerate: "add a toleration",
  cordon: "cordon", uncordon: "uncordon", remove: "remove", drain: "drain",
};

function button(text, kind, value) {
  const make = typeof value === "function" ? value : () => value;
  return element("button", { type: "button", onclick: () => setChanges([...changes(), [kind, make()]]) }, text);
}

function number(label) {
  return element("input", { type: "number", min: 1, max: 10000, value: 1, "aria-label": label, class: "small" });
}

export function nodeForms(node) {
  const name = node.name, added = number("Number of nodes");
  const cordon = node.cordoned ? "uncordon" : "cordon";
  return element("fieldset", { id: "what-if" }, element("legend", {}, "What if"),
    ...["drain", "remove", cordon].map((kind) => button(NAMES[kind], kind, name)),
    element("span", { class: "form" }, button("add", "add", () => `${name}:${added.value}`), added, "nodes like this"));
}

export function podForms(pod, taints) {
  const copies = number("Number of pods");
  const amounts = ["cpu", "memory"].map((name) => [name, element("input", {
    class: "small", value: pod.requests[name] ?? "0", "aria-label": `Requested ${name}` })]);
  const taint = element("select", { "aria-label": "Taint" },
    taints.map((each) => element("option", { value: each }, each)));
  const requests = () => `${pod.pod}:${amounts.map(([name, input]) => `${name}=${input.value}`).join(",")}`;
  return element("fieldset", { id: "what-if" }, element("legend", {}, "What if"),
    element("span", { class: "form" }, button("request", "requests", requests),
      ...amounts.flatMap(([name, input]) => [name, input])),
    taints.length ? element("span", { class: "form" },
      button("tolerate", "tolerate", () => `${pod.pod}:${taint.value}`), taint) : null,
    element("span", { class: "form" }, button("add", "pods", () => `${pod.pod}:${copies.value}`), copies, "pods like this"));
}

export const SIGNS = "The map shows the cluster with these changes: + and - are pods that come and leave, a red cross "
  + "is a removed node, a double frame a new one.";

// The text is part of the URL and of the request, of which servers accept about 8,000 bytes.
const MOST_CONFIG = 6000;
// Kept when the panel is made again, as with every new snapshot of a server.
let typed = "";

function configForm() {
  const text = element("textarea", { id: "new-config", rows: 4, spellcheck: false, value: typed, oninput: () => { typed = text.value; }, "aria-label": "KubeSchedulerConfiguration",
    placeholder: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration" });
  const problem = element("p", { role: "alert", class: "quiet" });
  const file = element("input", { type: "file", accept: ".yaml,.yml,.json", "aria-label": "File with a configuration",
    onchange: async () => { if (file.files.length) typed = text.value = await file.files[0].slice(0, 2 * MOST_CONFIG).text(); } });
  const onclick = () => {
    const isLong = new URLSearchParams({ c: text.value }).toString().length > MOST_CONFIG;
    problem.textContent = isLong ? "The configuration is too long for this page; `moorage simulate what-if --new-config FILE` has no such limit." : "";
    if (isLong || !text.value.trim()) return;
    setChanges([...changes().filter(([kind]) => kind !== "new-config"), ["new-config", text.value]]);
  };
  return element("details", {}, element("summary", {}, "another configuration"), text,
    element("span", { class: "form" }, element("button", { type: "button", onclick }, "switch"), file), problem);
}

export function configurationForms(plugins) {
  const weight = number("Weight"), plugin = element("select", { "aria-label": "Score plugin" },
    plugins.map((name) => element("option", { value: name }, name)));
  return element("fieldset", { id: "what-if" }, element("legend", {}, "What if"),
    element("span", { class: "form" }, button("weigh", "weight", () => `${plugin.value}:${weight.value}`), plugin, weight),
    configForm());
}

// A configuration is long; its text is in the command.
const name = (kind, text) => (kind === "new-config" ? "another configuration" : `${NAMES[kind] ?? kind} ${text}`);

// The changes that are tried out, each with a button to take it back.
export function changeList(place, text) {
  const all = changes();
  place.hidden = !all.length;
  place.replaceChildren(
    element("strong", {}, "What if:"),
    ...all.map(([kind, text], index) => element("span", { class: "change" }, `${name(kind, text)} `,
      element("button", { type: "button", class: "link", "aria-label": `Take back: ${name(kind, text)}`,
        onclick: () => setChanges(all.filter((_, each) => each !== index)) }, "×"))),
    text,
    link("Back to the cluster", () => setChanges([])));
}

const OUTCOMES = [
  ["placed", "gets a node", "get a node"], ["moved", "moves", "move"], ["pending", "has no node then", "have no node then"],
  ["lost", "is lost", "are lost"], ["blocked", "is blocked by a disruption budget", "are blocked by disruption budgets"],
];

export function whatIfPanel(answer, open) {
  const { counts, totals, cost } = answer;
  const there = OUTCOMES.filter(([kind]) => counts[kind]);
  const pod = (each) => (each.isNew ? each.pod : link(each.pod, () => open({ pod: each.pod, node: "" })));
  const node = (name) => (name ? link(name, () => open({ node: name, pod: "" })) : "");
  const rows = {
    placed: (each) => [pod(each), node(each.to)],
    moved: (each) => [pod(each), node(each.from), node(each.to)],
  };
  const byReason = (pods) => [...Map.groupBy(pods, (each) => each.reason)].flatMap(([reason, same]) => [
    element("p", {}, reason), table(["pod", "from"], same.map((each) => [pod(each), node(each.from)]))]);
  return [
    element("h2", {}, there.length ? "With these changes" : "These changes make no difference"),
    ...there.map(([kind, one, several]) => element("details", { open: true, class: kind },
      element("summary", {}, `${count(counts[kind], "pod")} ${counts[kind] === 1 ? one : several}`),
      rows[kind] ? table(kind === "placed" ? ["pod", "to"] : ["pod", "from", "to"], answer[kind].map(rows[kind]))
        : byReason(answer[kind]),
      element("ul", {}, more(counts[kind] - answer[kind].length)))),
    element("h3", {}, "Before and after"),
    table(["", "before", "after"], [
      ["pending pods", String(answer.pendingBefore), String(answer.pendingAfter)],
      ...totals.map(({ before, after }) => [`${before.name} requested`,
        `${before.requestedText} of ${before.allocatableText}`, `${after.requestedText} of ${after.allocatableText}`]),
      ...(cost ? [["cost per hour", cost.beforeText, `${cost.afterText} (${cost.difference < 0 ? "" : "+"}${cost.differenceText})`]] : [])]),
    cost?.unpriced ? element("p", { class: "quiet" }, `${count(cost.unpriced, "node")} without a price not counted.`) : null,
    element("p", { class: "quiet" }, answer.placedFirst ? `${count(answer.placedFirst, "pending pod")} that ${
      answer.placedFirst === 1 ? "fits is" : "fit are"} placed first, before and after. ` : "", "Nothing is changed."),
    ...(answer.command ? [element("p", { class: "quiet" }, "The same on the command line:"), element("code", {}, answer.command)] : []),
  ];
}
