// The time of a recording: a slider, play and pause, and jumps to the next event of a kind.

import { element, onColours } from "./dom.js";
import { change, current } from "./view.js";

const KINDS = [["preemption", "▲", "preemption"], ["rejection", "●", "rejection"], ["nodeLoss", "✕", "node loss"]];
const PLAY_SECONDS = 30;

export function clock(seconds) {
  const part = (value) => String(Math.floor(value)).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  return `${days ? `day ${days + 1}, ` : ""}${part((seconds / 3600) % 24)}:${part((seconds / 60) % 60)}:${part(seconds % 60)}`;
}

export class TimeBar {
  constructor(place, timeline, whenShown) {
    this.timeline = timeline;
    this.whenShown = whenShown;
    this.playing = false;
    this.button = element("button", { type: "button", id: "play", onclick: () => this.toggle() }, "Play");
    this.slider = element("input", { type: "range", min: 0, max: timeline.end, step: "any", value: this.at,
      "aria-label": "Time", oninput: () => { this.pause(); this.go(Number(this.slider.value), true); },
      onchange: () => this.go(Number(this.slider.value)), onkeydown: (event) => this.key(event) });
    this.text = element("output", { id: "clock" });
    this.said = element("span", { id: "said", class: "quiet", "aria-live": "polite" });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.jumps = KINDS.map(([kind, sign, name]) => element("button", {
      type: "button", id: `next-${kind}`, disabled: !timeline.counts[kind], onclick: () => this.jump(kind) },
    `${sign} Next ${name} (${timeline.counts[kind].toLocaleString("en")})`));
    place.replaceChildren(this.button, this.text, element("div", { class: "track" }, this.canvas, this.slider),
      ...this.jumps, this.said);
    place.hidden = false;
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    onColours(() => this.draw());
    this.show();
  }

  get at() { return Math.min(Number(current().at) || 0, this.timeline.end); }

  go(at, replace = false) {
    change({ at: String(Math.round(Math.max(0, Math.min(at, this.timeline.end)) * 1000) / 1000) }, { replace });
  }

  show() {
    this.slider.value = this.at;
    this.text.textContent = `${clock(this.at)} of ${clock(this.timeline.end)}`;
    this.slider.setAttribute("aria-valuetext", this.text.textContent);
    this.draw();
  }

  key(event) {
    // One step of the native slider would be too small to see a difference.
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.pause();
    this.go(this.at + (steps[event.key] * this.timeline.end) / 100, true);
  }

  jump(kind) {
    this.pause();
    const marks = this.timeline.marks[kind];
    const next = marks.find((mark) => mark.at > this.at) ?? marks[0];
    const others = marks.filter((mark) => mark.at === next.at).length - 1;
    this.said.textContent = next.text + (others ? `, and ${others.toLocaleString("en")} more at this time` : "");
    this.go(next.at);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  pause() {
    this.playing = false;
    this.button.textContent = "Play";
  }

  // A frame is requested when the one before is shown; a slow server gives fewer frames.
  async play() {
    this.playing = true;
    this.button.textContent = "Pause";
    if (this.at >= this.timeline.end) this.go(0, true);
    let before = performance.now();
    while (this.playing) {
      await new Promise(requestAnimationFrame);
      const now = performance.now(), at = this.at + ((now - before) / 1000 / PLAY_SECONDS) * this.timeline.end;
      before = now;
      this.go(at, true);
      await this.whenShown();
      if (at >= this.timeline.end) this.pause();
    }
  }

  // Pending pods over time, and a sign for each event, in a lane per kind.
  draw() {
    const { canvas, timeline } = this, context = canvas.getContext("2d");
    const width = canvas.parentElement.clientWidth, height = 40, scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const x = (at) => 8 + (timeline.end ? at / timeline.end : 0) * (width - 16);
    const { at, pending } = timeline.course, most = Math.max(1, ...pending);
    context.fillStyle = colour("level-2");
    context.beginPath();
    context.moveTo(x(0), height);
    at.forEach((moment, index) => context.lineTo(x(moment), height - (pending[index] / most) * (height - 2)));
    context.lineTo(x(timeline.end), height);
    context.fill();
    context.font = "9px system-ui, sans-serif";
    context.textAlign = "center";
    KINDS.forEach(([kind, sign], lane) => {
      context.fillStyle = colour(kind === "rejection" ? "quiet" : "over");
      for (const mark of timeline.marks[kind]) context.fillText(sign, x(mark.at), 10 + 12 * lane);
    });
    context.fillStyle = colour("focus");
    context.fillRect(x(this.at) - 1, 0, 2, height);
  }
}
