// Shows the figures of a chart under the pointer. Everything else works without a script.
"use strict";
for (const figure of document.querySelectorAll("figure")) {
  const data = figure.querySelector("script[type='application/json']");
  if (!data) continue;
  const { times, series, unit } = JSON.parse(data.textContent);
  const tooltip = document.createElement("div");
  tooltip.className = "tooltip";
  tooltip.hidden = true;
  figure.append(tooltip);
  const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
  const clock = (seconds) => {
    const part = (value) => String(Math.floor(value)).padStart(2, "0");
    return `${part(seconds / 3600)}:${part((seconds / 60) % 60)}:${part(seconds % 60)}`;
  };
  for (const svg of figure.querySelectorAll("svg.plot")) {
    const { left, width, top, floor } = svg.dataset;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("class", "pointer");
    svg.append(line);
    const hide = () => {
      tooltip.hidden = true;
      line.setAttribute("d", "");
    };
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      const share = (x - left) / width;
      if (share < 0 || share > 1) return hide();
      const moment = share * times[times.length - 1];
      let place = times.findIndex((time) => time > moment) - 1;
      if (place < 0) place = times.length - 1;
      line.setAttribute("d", `M${x} ${top}V${floor}`);
      tooltip.textContent = [clock(times[place])]
        .concat(series.map(([name, values]) => `${name} ${number.format(values[place])}`))
        .join(" · ") + ` ${unit}`;
      tooltip.hidden = false;
      const outer = figure.getBoundingClientRect();
      const room = outer.width - tooltip.offsetWidth - 8;
      tooltip.style.left = `${Math.max(8, Math.min(room, event.clientX - outer.left + 12))}px`;
      tooltip.style.top = `${box.top - outer.top + 4}px`;
    });
  }
}
