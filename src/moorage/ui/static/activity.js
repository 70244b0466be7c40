// The last minutes of a scheduler: throughput, waits, queue lengths and rejections, second by second.

import { element, link, table } from "./dom.js";

const DASHES = [[], [6, 3], [2, 2], [8, 2, 2, 2]];
const QUEUES = [["active", "active"], ["backoff", "backing off"], ["unschedulable", "unschedulable"], ["gated", "gated"]];

export function activityPart(activity, open) {
  if (!activity.at?.length) return [];
  const { bound, rejected, queues, latency, waits, reasons, recent } = activity;
  const seconds = activity.at.length, sum = (values) => values.reduce((total, value) => total + value, 0);
  const rate = (sum(bound) / seconds).toFixed(1);
  return [
    element("h2", {}, `The last ${minutes(seconds)}`),
    chart(`Throughput: ${sum(bound).toLocaleString("en")} pods bound, ${rate} per second`, "pods per second",
      [["bound", bound], ["rejected", rejected]]),
    chart(waits.count ? `Wait from queue to binding: median ${span(waits.p50)}, 99 % within ${span(waits.p99)}`
      : "Wait from queue to binding: no pod was bound", "milliseconds", [["median", latency.map((value) => 1000 * (value ?? 0))]]),
    chart("Queue lengths", "pods", QUEUES.map(([name, text]) => [text, queues[name]]).filter(([, values], index) => !index || values.some(Boolean))),
    Object.keys(reasons).length ? element("h3", {}, "Rejections by plugin") : null,
    Object.keys(reasons).length ? table(["rejected by", "times"], Object.entries(reasons)) : null,
    element("h3", {}, "Latest decisions"),
    table(["time", "pod", "", "details"], recent.slice(0, 20).map(({ at, pod, what, text }) => [
      timeOfDay(at), link(pod, () => open({ pod, node: "" })), what, text])),
  ];
}

export const timeOfDay = (at) => new Date(1000 * at).toLocaleTimeString("en-GB");

const minutes = (seconds) => (seconds >= 120 ? `${Math.round(seconds / 60)} minutes` : `${seconds} seconds`);
const span = (seconds) => (seconds < 1 ? `${Math.round(1000 * seconds)} ms` : `${seconds.toFixed(1)} s`);

// Lines differ by dashes and by the order of the caption.
function chart(title, unit, series) {
  const canvas = element("canvas", { role: "img", "aria-label": title }), width = 420, height = 70;
  const scale = devicePixelRatio || 1, context = canvas.getContext("2d");
  canvas.width = width * scale;
  canvas.height = height * scale;
  context.scale(scale, scale);
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const most = Math.max(...series.flatMap(([, values]) => values), 1e-9), count = series[0][1].length;
  context.strokeStyle = colour("line");
  context.strokeRect(0.5, 0.5, width - 1, height - 1);
  series.forEach(([, values], index) => {
    context.strokeStyle = colour(index ? "ink" : "accent");
    context.lineWidth = 1.5;
    context.setLineDash(DASHES[index % DASHES.length]);
    context.beginPath();
    values.forEach((value, i) => context.lineTo((width * (i + 0.5)) / count, height - 2 - (value / most) * (height - 6)));
    context.stroke();
  });
  const last = series.map(([name, values], index) => `${["—", "– –", "····", "– ·"][index % 4]} ${name} ${round(values.at(-1))}`);
  return element("figure", {}, element("figcaption", {}, title), canvas,
    element("p", { class: "quiet" }, `${last.join("  ")}; at most ${round(most)} ${unit}`));
}

const round = (value) => (value < 10 ? Math.round(100 * value) / 100 : Math.round(value)).toLocaleString("en");
