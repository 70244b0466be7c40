// The cluster map: a tile per node on a canvas. Colour is requested against allocatable; marks tell
// the state, so that it can be seen without colours.

import { count, element, onColours } from "./dom.js";

export const CORDONED = 1, TAINTED = 2, NOT_READY = 4;
const LEVELS = 6;
const HEADING = 22, GAP = 10;

export class ClusterMap {
  constructor(canvas, { onOpen, onPoint }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.nodes = null;
    this.matches = null;
    this.selected = -1;
    this.cursor = -1;
    this.tiles = [];
    this.isSized = false;
    // Frames around the selected node and the one under the keyboard, so that the map is not drawn again.
    this.frames = ["selected", "cursor"].map((name) => element("div", { class: `frame ${name}`, hidden: true }));
    canvas.after(...this.frames);
    canvas.addEventListener("click", (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      if (found >= 0) { this.cursor = found; onOpen(found); }
    });
    canvas.addEventListener("pointermove", (event) => onPoint(this.at(event.offsetX, event.offsetY), event));
    canvas.addEventListener("pointerleave", (event) => onPoint(-1, event));
    canvas.addEventListener("keydown", (event) => this.key(event, onOpen));
    canvas.addEventListener("focus", () => this.placeFrames());
    canvas.addEventListener("blur", () => this.placeFrames());
    new ResizeObserver(() => this.layOut()).observe(canvas.parentElement);
    onColours(() => this.draw());
  }

  show(nodes) {
    this.nodes = nodes;
    this.removed = new Set(nodes.removed);
    this.added = new Set(nodes.added);
    this.flows = new Map((nodes.flows ?? []).map(([position, come, leave]) => [position, { come, leave }]));
    this.selected = -1;
    this.cursor = Math.min(this.cursor, nodes.names.length - 1);
    this.layOut();
  }

  clear() {
    this.show({ resource: "", names: [], states: [], allocatable: [], requested: [], group: { key: "", values: [], codes: [] } });
  }

  // What a what-if changes at a node, as texts.
  differences(position) {
    const { come = 0, leave = 0 } = this.flows.get(position) ?? {};
    return [this.removed.has(position) && "removed", this.added.has(position) && "new",
      come && count(come, "pod") + " more", leave && count(leave, "pod") + " less"].filter(Boolean);
  }

  // The positions that a search matches, as a Set; null for all.
  highlight(matches) {
    this.matches = matches;
    this.draw();
  }

  select(name) {
    this.selected = this.nodes ? this.nodes.names.indexOf(name) : -1;
    if (this.selected >= 0) this.cursor = this.selected;
    this.placeFrames();
  }

  share(position) {
    const { allocatable, requested } = this.nodes;
    return allocatable[position] ? requested[position] / allocatable[position] : null;
  }

  layOut() {
    if (!this.nodes) return;
    const { names, group } = this.nodes;
    const style = getComputedStyle(this.canvas.parentElement);
    const width = this.canvas.parentElement.clientWidth
      - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    this.width = Math.max(60, width);
    this.size = tileSize(names.length);
    this.columns = Math.max(1, Math.floor(this.width / this.size));
    const members = group.values.map(() => []);
    names.forEach((_, position) => members[group.codes[position]].push(position));
    const order = group.values.map((value, code) => [value, members[code]])
      .sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
    this.headings = [];
    this.tiles = new Array(names.length);
    this.order = [];
    let top = 0;
    for (const [value, positions] of order) {
      if (group.key) {
        this.headings.push([`${value || "(no label)"}: ${positions.length.toLocaleString("en")}`, top]);
        top += HEADING;
      }
      positions.forEach((position, index) => {
        this.tiles[position] = [(index % this.columns) * this.size,
          top + Math.floor(index / this.columns) * this.size];
        this.order.push(position);
      });
      top += Math.ceil(positions.length / this.columns) * this.size + GAP;
    }
    this.height = Math.max(top, this.size);
    this.draw();
  }

  draw() {
    if (!this.nodes) return;
    const { canvas, context } = this;
    // Browsers limit the area of a canvas; a very tall one is drawn more coarsely.
    const scale = Math.min(devicePixelRatio || 1, 16000 / this.height);
    const [wide, high] = [Math.round(this.width * scale), Math.round(this.height * scale)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${this.height}px`;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const colours = palette(canvas);
    context.fillStyle = colours.ink;
    context.font = "13px system-ui, sans-serif";
    for (const [text, top] of this.headings) context.fillText(text, 0, top + 15, this.width);
    const most = Math.max(1, ...maxima(this.nodes.allocatable));
    this.tiles.forEach(([x, y], position) => {
      const match = !this.matches || this.matches.has(position);
      context.globalAlpha = match ? 1 : 0.15;
      // The area is the capacity; a small node is still seen.
      const part = this.isSized ? Math.max(0.3, Math.sqrt(this.nodes.allocatable[position] / most)) : 1;
      const size = this.size * part, gap = (this.size - size) / 2;
      drawTile(context, x + gap, y + gap, size, this.share(position), this.nodes.states[position], colours);
    });
    context.globalAlpha = 1;
    this.drawDifferences(colours);
    this.placeFrames();
  }

  placeFrames() {
    const { canvas, size } = this, hasFocus = document.activeElement === canvas;
    [this.selected, hasFocus ? this.cursor : -1].forEach((position, index) => {
      const frame = this.frames[index], tile = this.tiles[position];
      frame.hidden = !tile;
      if (!tile) return;
      frame.style.left = `${canvas.offsetLeft + tile[0] - 2}px`;
      frame.style.top = `${canvas.offsetTop + tile[1] - 2}px`;
      frame.style.width = frame.style.height = `${size + 2}px`;
    });
  }

  // A removed node is empty with a thick cross, a new one has a double frame; +3 -1 are pods.
  drawDifferences(colours) {
    const { context, size } = this, side = size > 10 ? size - 2 : size - 1;
    for (const position of this.removed) {
      const [x, y] = this.tiles[position];
      context.fillStyle = colours.none;
      context.fillRect(x, y, side, side);
      context.strokeStyle = colours.over;
      context.lineWidth = size > 20 ? 4 : 2;
      lines(context, [[x + 1, y + 1, x + side - 1, y + side - 1], [x + 1, y + side - 1, x + side - 1, y + 1]]);
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
    }
    for (const position of this.added) {
      const [x, y] = this.tiles[position];
      context.strokeStyle = colours.focus;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      if (size > 10) context.strokeRect(x + 2.5, y + 2.5, side - 5, side - 5);
    }
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const [position, { come, leave }] of this.flows) {
      if (this.removed.has(position)) continue;
      const text = size > 20 ? [come && `+${come}`, leave && `-${leave}`].filter(Boolean).join(" ")
        : come && leave ? "±" : come ? "+" : "-";
      this.label(this.tiles[position], side, text, colours);
    }
    context.textAlign = "start";
    context.textBaseline = "alphabetic";
  }

  label([x, y], side, text, colours) {
    const { context, size } = this;
    context.font = `bold ${size > 20 ? Math.min(14, side / 2.2) : side}px system-ui, sans-serif`;
    const wide = size > 20 ? side - 2 : side, high = size > 20 ? side / 2 : side;
    context.fillStyle = colours.ground;
    context.fillRect(x + (side - wide) / 2, y + (side - high) / 2, wide, high);
    context.strokeStyle = colours.focus;
    context.lineWidth = 1;
    context.strokeRect(x + (side - wide) / 2 + 0.5, y + (side - high) / 2 + 0.5, wide - 1, high - 1);
    context.fillStyle = colours.ink;
    context.fillText(text, x + side / 2, y + side / 2 + 1, wide - 2);
  }

  at(x, y) {
    if (!this.nodes) return -1;
    return this.tiles.findIndex(([left, top]) =>
      x >= left && x < left + this.size && y >= top && y < top + this.size);
  }

  key(event, onOpen) {
    if (!this.nodes || !this.order.length) return;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };
    const last = this.order.length - 1;
    let index = this.order.indexOf(this.cursor);
    if (event.key in steps) index = index < 0 ? 0 : index + steps[event.key];
    else if (event.key === "Home") index = 0;
    else if (event.key === "End") index = last;
    else if ((event.key === "Enter" || event.key === " ") && index >= 0) {
      event.preventDefault();
      onOpen(this.cursor);
      return;
    } else return;
    event.preventDefault();
    this.cursor = this.order[Math.max(0, Math.min(last, index))];
    this.placeFrames();
    this.reveal();
    this.canvas.dispatchEvent(new CustomEvent("cursor", { detail: this.cursor }));
  }

  reveal() {
    const frame = this.canvas.parentElement, top = this.canvas.offsetTop + this.tiles[this.cursor][1];
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + this.size > frame.scrollTop + frame.clientHeight) {
      frame.scrollTop = top + this.size - frame.clientHeight + 4;
    }
  }
}

// The largest value of parts that are small enough for the arguments of a call.
function maxima(values) {
  const parts = [];
  for (let i = 0; i < values.length; i += 10000) parts.push(Math.max(...values.slice(i, i + 10000)));
  return parts;
}

function tileSize(count) {
  const [, size] = [[60, 44], [200, 34], [600, 26], [1500, 18], [8000, 13], [Infinity, 7]].find(([most]) => count <= most);
  return size;
}

export function palette(place = document.documentElement) {
  const style = getComputedStyle(place);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    levels: Array.from({ length: LEVELS }, (_, level) => read(`level-${level}`)),
    ground: read("ground"), over: read("over"), none: read("none"), line: read("line"), ink: read("ink"),
    onDark: read("on-dark"), focus: read("focus"),
  };
}

// share: requested against allocatable, null for a node without the resource.
export function drawTile(context, x, y, size, share, state, colours) {
  const side = size > 10 ? size - 2 : size - 1;
  const level = share === null ? -1 : Math.min(LEVELS - 1, Math.floor(share * (LEVELS - 1) + 0.5));
  context.fillStyle = level < 0 ? colours.none : share > 1 ? colours.over : colours.levels[level];
  context.fillRect(x, y, side, side);
  if (level <= 0) {
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
  }
  if (!state) return;
  context.strokeStyle = context.fillStyle = level > 2 ? colours.onDark : colours.ink;
  context.lineWidth = size > 20 ? 2 : 1;
  if (state & CORDONED) stripes(context, x, y, side, size > 20 ? 7 : 4);
  if (state & NOT_READY) {
    lines(context, [[x + 1, y + 1, x + side - 1, y + side - 1], [x + 1, y + side - 1, x + side - 1, y + 1]]);
  }
  if (state & TAINTED) {
    const corner = Math.max(4, side * 0.4);
    context.beginPath();
    context.moveTo(x + side, y);
    context.lineTo(x + side, y + corner);
    context.lineTo(x + side - corner, y);
    context.fill();
  }
}

function stripes(context, x, y, side, gap) {
  const found = [];
  for (let i = gap; i < 2 * side; i += gap) {
    found.push([x + Math.max(0, i - side), y + Math.min(i, side), x + Math.min(i, side), y + Math.max(0, i - side)]);
  }
  lines(context, found);
}

function lines(context, each) {
  context.beginPath();
  for (const [x0, y0, x1, y1] of each) { context.moveTo(x0, y0); context.lineTo(x1, y1); }
  context.stroke();
}
