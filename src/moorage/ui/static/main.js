// The page: reads the view from the URL, asks the API, and shows the answers.

import { activityPart, timeOfDay } from "./activity.js";
import { common, follow, get, podPath } from "./api.js";
import { element, onColours } from "./dom.js";
import { ClusterMap, CORDONED, NOT_READY, TAINTED, drawTile, palette } from "./map.js";
import { close, historyPart, nodePanel, pendingPanel, podPanel, podsPanel } from "./panels.js";
import { TimeBar, clock } from "./time.js";
import { change, changes, current } from "./view.js";
import { SIGNS, changeList, whatIfPanel } from "./what_if.js";

const find = (id) => document.getElementById(id);
const STATES = [[CORDONED, "cordoned"], [TAINTED, "tainted"], [NOT_READY, "not ready"]];

let cluster = null;
let typing = 0;
let timeBar = null;
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

// Whether another view has been asked for, which the next update shows. Times are all shown, as a slider moves.
function isOutdated(view) {
  return Object.entries(current()).some(([name, value]) => name !== "at" && value !== view[name]);
}

// A part of the page with the answer to what the view asks of it. It shows the answer to its latest
// question only: after an error nothing is left of another one, such as another time.
class Part {
  constructor({ of, load, show, clear }) {
    Object.assign(this, { of, load, show, clear });
    this.shown = "";
    this.before = null;
    this.failure = null;
  }

  question(view) {
    return JSON.stringify([view.at, ...this.of(view)]);
  }

  async update(view, isForced) {
    const question = this.question(view);
    if (question === this.shown && !this.failure && !isForced) return;
    try {
      const answer = await this.load(view);
      if (isOutdated(view)) return;
      this.show(answer, view, { before: this.before, isForced });
      [this.shown, this.before, this.failure] = [question, view, null];
    } catch (failure) {
      this.drop(view, failure);
      throw failure;
    }
  }

  drop(view, failure) {
    this.failure = failure;
    if (this.question(view) === this.shown) return;
    this.shown = "";
    this.clear(failure, view);
  }
}

const totals = new Part({
  of: () => [],
  load: () => get("cluster"),
  show: (answer) => { cluster = answer; showCluster(); },
  clear: () => { find("totals").textContent = ""; },
});

// The nodes as they are, or with the changes of a what-if.
const tiles = new Part({
  of: ({ by, group, what }) => [by, group, what],
  load: async ({ by, group, what }) => {
    changeList(find("changes"), "Computing …");
    const parameters = { resource: by, group: group in cluster.labels ? group : "" };
    return what ? get("what-if", [...changes(), ...Object.entries(parameters)]) : { map: await get("nodes", parameters) };
  },
  show: (answer) => {
    answered = answer;
    map.show(answer.map);
  },
  clear: () => map.clear(),
});
let answered = null;

const matches = new Part({
  of: ({ q }) => [q],
  load: ({ q }) => (q ? get("match", { q }) : { positions: null }),
  show: ({ positions }) => {
    find("found").textContent = positions ? `${positions.length.toLocaleString("en")} found` : "";
    map.highlight(positions && new Set(positions));
  },
  clear: () => {
    find("found").textContent = "";
    map.highlight(null);
  },
});

const POD = "pod:";
const isPods = ({ q, pod, node, what }) => !pod && !node && !what && q.split(/\s+/).some((word) => word.startsWith(POD));
const isWhatIf = ({ pod, node, what }) => what && !pod && !node;

const details = new Part({
  of: (view) => [view.node, view.pod, view.what, view.compare, isPods(view) ? view.q : ""],
  load: (view) => {
    if (isWhatIf(view)) return tiles.failure ? Promise.reject(tiles.failure) : answered;
    if (isPods(view)) return get("pods", { q: view.q });
    if (view.pod || view.node) readHistory(view);
    if (view.pod) return get(podPath(view.pod), { compare: view.compare });
    return view.node ? get(`nodes/${encodeURIComponent(view.node)}`, changes()) : get("pending");
  },
  show: showPanel,
  clear: (failure, { pod, node }) => {
    panelContent = "";
    find("panel").replaceChildren(...(pod || node ? [close(change)] : []), element("p", {}, failure.message));
  },
});

async function updateOnce({ force: isForced = false }) {
  const view = current(), failures = [];
  if (view.at) common.at = view.at;
  else delete common.at;
  find("error").hidden = true;
  timeBar?.show();
  const query = find("query");
  if (!typing && query.value.trim() !== view.q) query.value = view.q;
  for (const part of [totals, tiles, matches, details]) {
    if (isOutdated(view)) return;
    if (failures.length && totals.failure) part.drop(view, totals.failure); // The rest depends on it.
    else await part.update(view, isForced).catch((failure) => failures.push(failure.message));
    if (part === totals && cluster) showChoices(view);
    if (part !== tiles) continue;
    changeList(find("changes"), tiles.failure ? "" : SIGNS);
    map.select(view.node);
  }
  if (!failures.length) await begin().catch((failure) => failures.push(failure.message));
  find("error").textContent = [...new Set(failures)].join("; ");
  find("error").hidden = !failures.length;
  document.body.dataset.ready = failures.length ? "failed" : "yes";
}

function showChoices({ by, group, size }) {
  find("by").value = by;
  find("group").value = group in cluster.labels ? group : "";
  const isSized = size === "capacity";
  if (isSized === map.isSized) return;
  find("size").checked = map.isSized = isSized;
  map.draw();
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

let panelContent = "";

function openDetails(panel) {
  return new Set([...panel.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
}

// The first history of a recording takes a while, so the panel does not wait for it.
let histories = [], historyOf = "", awaited = Promise.resolve([]);

function readHistory({ pod, node }) {
  awaited = get("history", pod ? { pod } : { node }).then(({ lines }) => lines).catch((failure) => {
    console.info(`no history: ${failure.message}`);
    return [];
  });
}

async function showHistory({ pod, node }) {
  if (pod + node !== historyOf) histories = [];
  historyOf = pod + node;
  const own = awaited, lines = await own;
  if (own !== awaited) return; // Another one has been asked for.
  histories = lines;
  placeHistory();
}

function placeHistory() {
  find("history")?.replaceChildren(...historyPart(histories, cluster.at === null ? timeOfDay : clock, change));
}

let activityShown = [];

// Below the pending pods, and read again every two seconds while it can be seen.
async function showActivity() {
  const { pod, node, what } = current();
  if (pod || node || what || document.hidden || readingActivity) return;
  readingActivity = true;
  try {
    activityShown = activityPart(await get("activity"), change).filter(Boolean);
  } catch (failure) {
    console.info(failure.message);
    activityShown = [];
  }
  readingActivity = false;
  find("activity")?.replaceChildren(...activityShown);
}
let readingActivity = false;

function showPanel(answer, view, { before, isForced }) {
  const panel = find("panel");
  if (view.pod || view.node) showHistory(view);
  // A panel that would look the same stays, with what is open, scrolled to or focused in it.
  const kind = isWhatIf(view) ? "what-if" : isPods(view) ? "pods" : view.pod ? podPath(view.pod) : view.node ? `nodes/${view.node}` : "pending";
  const content = JSON.stringify([kind, { ...answer, version: 0 }]);
  if (content === panelContent) return;
  const same = panelContent.startsWith(JSON.stringify([kind]).slice(0, -1));
  const [top, opened, focused] = [panel.scrollTop, openDetails(panel), panel.contains(document.activeElement)];
  panelContent = content;
  const show = isWhatIf(view) ? whatIfPanel : isPods(view) ? podsPanel : view.pod ? podPanel : view.node ? nodePanel : pendingPanel;
  const parts = show(answer, change, cluster);
  panel.replaceChildren(...parts.flat().filter((part) => part !== null));
  if (view.pod || view.node) placeHistory();
  if (kind === "pending") panel.append(element("div", { id: "activity" }, activityShown));
  if (same) {
    for (const each of panel.querySelectorAll("details")) each.open ||= opened.has(each.firstChild.textContent);
    if (focused) panel.focus({ preventScroll: true });
  }
  panel.scrollTop = same ? top : 0;
  const isOpened = before && before.at === view.at && !isForced;
  if (isOpened && !view.compare && (view.pod || view.node || view.what)) panel.focus({ preventScroll: innerWidth > 760 });
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
find("query").addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => { typing = 0; change({ q: event.target.value.trim() }, { replace: true }); }, 150);
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

// What needs the cluster once: the time of a recording, and the changes of a server.
let hasBegun = false;
async function begin() {
  if (hasBegun) return;
  if (cluster.at !== null) timeBar = new TimeBar(find("time"), await get("timeline"), () => updating);
  hasBegun = true;
  if (cluster.version) followServer();
}

// Files have version 0, and do not change.
function followServer() {
  let newest = cluster.version, refreshing = false;
  const refresh = async () => {
    // A what-if stays as it was computed: it would take too long to compute it for every change.
    if (refreshing || document.hidden || current().what || newest <= cluster.version) return;
    refreshing = true;
    await update({ force: true });
    refreshing = false;
  };
  document.addEventListener("visibilitychange", refresh);
  setInterval(showActivity, 2000);
  showActivity();
  follow((version) => { newest = version; refresh(); });
}

await update({ force: true });
document.body.dataset.started = "yes";
