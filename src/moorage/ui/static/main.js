// The page: reads the view from the URL, asks the API, and shows the answers.

import { activityPart, timeOfDay } from "./activity.js";
import { common, follow, get, podPath } from "./api.js";
import { element, onColours } from "./dom.js";
import { ClusterMap, CORDONED, NOT_READY, TAINTED, drawTile, palette } from "./map.js";
import { historyPart, nodePanel, pendingPanel, podPanel, podsPanel } from "./panels.js";
import { TimeBar, clock } from "./time.js";
import { change, changes, current } from "./view.js";
import { SIGNS, changeList, whatIfPanel } from "./what_if.js";

const find = (id) => document.getElementById(id);
const STATES = [[CORDONED, "cordoned"], [TAINTED, "tainted"], [NOT_READY, "not ready"]];

let cluster = null;
let timeBar = null;
let shown = {};
const map = new ClusterMap(find("tiles"), {
  onOpen: (position) => change({ node: map.nodes.names[position], pod: "" }),
  onPoint: point,
});

function describe(position) {
  const { names, states, allocatable, requested, resource } = map.nodes;
  const share = map.share(position);
  const usage = share === null ? `no ${resource}` : `${Math.round(100 * share)} % of ${resource} requested`;
  const marks = STATES.filter(([flag]) => states[position] & flag).map(([, name]) => name);
  return [names[position], usage, ...marks, ...map.differences(position)].join(", ");
}

function point(position, event) {
  const tip = find("tip");
  tip.hidden = position < 0;
  if (position < 0) return;
  tip.textContent = describe(position);
  tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 4)}px`;
}

// One update after the other; of several requests for one, the last is made.
let updating = Promise.resolve(), waiting = false;
function update(options = {}) {
  if (waiting && !options.force) return updating;
  waiting = true;
  updating = updating.then(() => { waiting = false; return updateOnce(options); });
  return updating;
}

async function updateOnce({ force: isForced = false }) {
  const view = current(), before = shown;
  shown = view;
  const force = isForced || view.at !== before.at;
  if (view.at) common.at = view.at;
  else delete common.at;
  const is = (...names) => force || names.some((name) => view[name] !== before[name]);
  try {
    find("error").hidden = true;
    if (!cluster || force) { cluster = await get("cluster"); showCluster(); }
    const group = view.group in cluster.labels ? view.group : "";
    find("by").value = view.by;
    find("group").value = group;
    find("size").checked = map.isSized = view.size === "capacity";
    if (document.activeElement !== find("query")) find("query").value = view.q;
    if (is("by", "group", "what")) await showMap(view, group);
    else if (is("size")) map.draw();
    if (is("q", "by", "group", "what")) await search(view.q);
    if (is("node", "by", "group", "what")) map.select(view.node);
    const isPods = is("q") && [view, before].some(({ q }) => q?.startsWith(POD));
    if (isPods || is("node", "pod", "what", "compare")) await showPanel(view, { focus: !force && !isPods && before.by !== undefined });
    timeBar?.show();
    document.body.dataset.ready = "yes";
  } catch (failure) {
    find("error").textContent = failure.message;
    find("error").hidden = false;
    document.body.dataset.ready = "failed";
  }
}

let answered = null;

// The nodes as they are, or with the changes of a what-if.
async function showMap(view, group) {
  changeList(find("changes"), "Computing …");
  const parameters = { resource: view.by, group };
  let nodes;
  try {
    answered = view.what ? await get("what-if", [...changes(), ...Object.entries(parameters)]) : null;
    nodes = answered ? answered.map : await get("nodes", parameters);
  } catch (failure) {
    changeList(find("changes"), "");
    throw failure;
  }
  if (current().what !== view.what) return;
  changeList(find("changes"), SIGNS);
  map.show(nodes);
}

function showCluster() {
  const name = cluster.title || "Moorage";
  document.title = find("title").textContent = name;
  const { nodes, pods, pending, states } = cluster;
  find("totals").textContent = [
    `${nodes.toLocaleString("en")} nodes`, `${pods.toLocaleString("en")} pods on nodes`,
    `${pending.toLocaleString("en")} pending`,
    `${states.cordoned} cordoned`, `${states.tainted} tainted`, `${states.notReady} not ready`,
    ...cluster.resources.filter(({ name: each }) => each === "cpu" || each === "memory")
      .map((each) => `${each.name} ${each.requestedText} of ${each.allocatableText}`),
  ].join(" · ");
  options("by", cluster.resources.map(({ name: each }) => [each, each]));
  const keys = Object.entries(cluster.labels).filter(([, values]) => values <= 300);
  options("group", [["", "nothing"], ...keys.map(([key, values]) => [key, `${key} (${values})`])]);
}

function options(id, pairs) {
  find(id).replaceChildren(...pairs.map(([key, text]) => element("option", { value: key }, text)));
}

const POD = "pod:";

// The nodes of pods; the server sends the first hundred.
function nodesOf({ pods }) {
  const names = new Set(pods.map(({ node }) => node));
  return { positions: map.nodes.names.flatMap((name, position) => (names.has(name) ? [position] : [])) };
}

async function search(query) {
  if (!query) {
    find("found").textContent = "";
    map.highlight(null);
    return;
  }
  const { positions } = query.startsWith(POD) ? nodesOf(await get("pods", { q: query.slice(POD.length) }))
    : await get("match", { q: query });
  if (current().q !== query) return;
  find("found").textContent = `${positions.length.toLocaleString("en")} found`;
  map.highlight(new Set(positions));
}

let panelContent = "";

function openDetails(panel) {
  return new Set([...panel.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
}

// The first history of a recording takes a while, so the panel does not wait for it.
async function showHistory(view) {
  const { lines } = await get("history", view.pod ? { pod: view.pod } : { node: view.node });
  if (current().pod !== view.pod || current().node !== view.node) return;
  histories = lines;
  placeHistory();
}

let histories = [], historyOf = "";

function placeHistory() {
  find("history")?.replaceChildren(...historyPart(histories, cluster.at === null ? timeOfDay : clock, change));
}

let activityShown = [];

// Below the pending pods, and read again every two seconds while it can be seen.
async function showActivity() {
  const { pod, node, what } = current();
  if (pod || node || what || document.hidden) return;
  const activity = await get("activity");
  const place = find("activity");
  activityShown = activityPart(activity, change).filter(Boolean);
  place?.replaceChildren(...activityShown);
}

async function showPanel(view, { focus }) {
  const panel = find("panel");
  const isWhatIf = view.what && !view.pod && !view.node;
  if (view.pod || view.node) {
    if (view.pod + view.node !== historyOf) histories = [];
    historyOf = view.pod + view.node;
    showHistory(view).catch((failure) => console.info(`no history: ${failure.message}`));
  }
  const isSearch = view.q.startsWith(POD) && !view.pod && !view.node && !view.what;
  const path = isWhatIf ? "what-if" : isSearch ? "pods" : view.pod ? podPath(view.pod) : view.node ? `nodes/${encodeURIComponent(view.node)}` : "pending";
  const answer = isWhatIf ? answered : await get(path, isSearch ? { q: view.q.slice(POD.length) } : view.pod ? { compare: view.compare } : view.node ? changes() : {});
  const now = current();
  if (now.pod !== view.pod || now.node !== view.node || now.what !== view.what || now.compare !== view.compare || now.q !== view.q || !answer) return;
  // A panel that would look the same stays, with what is open, scrolled to or focused in it.
  const content = JSON.stringify([path, { ...answer, version: 0 }]);
  if (content === panelContent) return;
  const same = panelContent.startsWith(JSON.stringify([path]).slice(0, -1));
  const [top, opened, focused] = [panel.scrollTop, openDetails(panel), panel.contains(document.activeElement)];
  panelContent = content;
  const show = isWhatIf ? whatIfPanel : isSearch ? podsPanel : view.pod ? podPanel : view.node ? nodePanel : pendingPanel;
  const parts = show(answer, change, cluster);
  panel.replaceChildren(...parts.flat().filter((part) => part !== null));
  if (view.pod || view.node) placeHistory();
  if (!view.pod && !view.node && !view.what && !isSearch) panel.append(element("div", { id: "activity" }, activityShown));
  if (same) {
    for (const each of panel.querySelectorAll("details")) each.open ||= opened.has(each.firstChild.textContent);
    if (focused) panel.focus({ preventScroll: true });
  }
  panel.scrollTop = same ? top : 0;
  if (focus && !view.compare && (view.pod || view.node || view.what)) panel.focus({ preventScroll: innerWidth > 760 });
}

function legend() {
  const colours = palette();
  const sample = (share, state, text) => {
    const canvas = element("canvas", { width: 32, height: 32 });
    canvas.style.width = canvas.style.height = "16px";
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    drawTile(context, 0, 0, 16, share, state, colours);
    return element("span", {}, canvas, text);
  };
  find("legend").replaceChildren(
    sample(0, 0, "0 %"), sample(0.4, 0, "40 %"), sample(0.8, 0, "80 %"), sample(1, 0, "100 %"),
    sample(1.1, 0, "above"), sample(null, 0, "has none"),
    ...STATES.map(([flag, name]) => sample(0.2, flag, name)));
}

find("by").addEventListener("change", (event) => change({ by: event.target.value }));
find("size").addEventListener("change", (event) => change({ size: event.target.checked ? "capacity" : "" }));
find("group").addEventListener("change", (event) => change({ group: event.target.value }));
find("tools").addEventListener("submit", (event) => event.preventDefault());
let typing = 0;
find("query").addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => change({ q: event.target.value.trim() }, { replace: true }), 150);
});
find("tiles").addEventListener("cursor", (event) => { find("spoken").textContent = describe(event.detail); });
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input, select, textarea")) {
    event.preventDefault();
    find("query").focus();
  } else if (event.key === "Escape" && !event.target.matches("#query")) {
    change({ node: "", pod: "" });
    find("tiles").focus();
  }
});
addEventListener("hashchange", () => update());
addEventListener("popstate", () => update());
onColours(legend);
legend();
await update({ force: true });
if (cluster && cluster.at !== null) timeBar = new TimeBar(find("time"), await get("timeline"), () => updating);
document.body.dataset.started = "yes";
// Files have version 0, and do not change.
if (cluster?.version) {
  let newest = cluster.version, refreshing = false;
  const refresh = async () => {
    // A what-if stays as it was computed: it would take too long to compute it for every change.
    if (refreshing || document.hidden || current().what || newest <= cluster.version) return;
    refreshing = true;
    await update({ force: true });
    refreshing = false;
  };
  document.addEventListener("visibilitychange", refresh);
  setInterval(() => showActivity().catch((failure) => console.info(failure.message)), 2000);
  await showActivity();
  follow((version) => { newest = version; refresh(); });
}
