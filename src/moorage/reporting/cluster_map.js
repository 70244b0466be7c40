// The map of a report: a slider over the samples of the run, play, and jumps to disruptions.
import { element } from "../ui/static/dom.js";
import { ClusterMap } from "../ui/static/map.js";

const figure = document.querySelector(".cluster-map");
const { names, times, pending, cells, gone, disruptions } = JSON.parse(figure.querySelector("script").textContent);
const bytes = Uint8Array.from(atob(cells), (letter) => letter.charCodeAt(0));
const said = figure.querySelector(".map-text");
const map = new ClusterMap(figure.querySelector("canvas"), { onOpen: describe, onPoint: (node) => { if (node >= 0) describe(node); } });
let moment = times.length - 1, playing = 0;

function describe(node) {
  const share = map.share(node);
  said.textContent = `${names[node]}: ${share === null ? "not there" : `${Math.round(100 * share)} % requested`}`;
}

function clock(seconds) {
  const part = (value) => String(Math.floor(value)).padStart(2, "0");
  return `${part(seconds / 3600)}:${part((seconds / 60) % 60)}:${part(seconds % 60)}`;
}

function show(next) {
  moment = Math.max(0, Math.min(times.length - 1, next));
  const shares = [...bytes.subarray(moment * names.length, (moment + 1) * names.length)];
  map.show({
    names, states: names.map(() => 0), resource: "requests", requested: shares,
    allocatable: shares.map((share) => (share === gone ? 0 : 100)),
    group: { key: "", values: [""], codes: names.map(() => 0) },
  });
  slider.value = moment;
  text.textContent = `${clock(times[moment])} of ${clock(times.at(-1))}, ${pending[moment].toLocaleString("en")} pending`;
  slider.setAttribute("aria-valuetext", text.textContent);
}

function pause() {
  clearInterval(playing);
  playing = 0;
  button.textContent = "Play";
}

function toggle() {
  if (playing) { pause(); return; }
  if (moment === times.length - 1) show(0);
  button.textContent = "Pause";
  playing = setInterval(() => {
    show(moment + 1);
    if (moment === times.length - 1) pause();
  }, Math.max(60, 10000 / times.length));
}

function jump() {
  pause();
  const next = disruptions.find(({ at }) => at > times[moment]) ?? disruptions[0];
  const index = times.findIndex((at) => at >= next.at);
  show(index < 0 ? times.length - 1 : index);
  said.textContent = next.text;
}

const button = element("button", { type: "button", onclick: toggle }, "Play");
const slider = element("input", { type: "range", min: 0, max: times.length - 1, "aria-label": "Time",
  oninput: () => { pause(); show(Number(slider.value)); } });
const text = element("output");
figure.querySelector(".map-time").replaceChildren(button, slider, text,
  ...(disruptions.length ? [element("button", { type: "button", onclick: jump }, `Next disruption (${disruptions.length})`)] : []));
figure.querySelector("canvas").addEventListener("cursor", (event) => describe(event.detail));
show(moment);
