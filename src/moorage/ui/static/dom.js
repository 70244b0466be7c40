// Elements without markup: every text from the cluster becomes a text node.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.flat().filter((child) => child != null).map(asNode));
  return made;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

export function table(heads, rows) {
  const isNumber = (cell) => typeof cell === "number";
  // Amounts such as 52Gi are not broken into two lines, long names are.
  const isShort = (value) => typeof value === "string" && value.length <= 8;
  const numbers = heads.map((_, column) => rows.length > 0 && isNumber(rows[0][column]));
  const cell = (tag, value, column) => element(
    tag, { class: numbers[column] ? "number" : isShort(value) ? "short" : "" },
    isNumber(value) ? value.toLocaleString("en") : value,
  );
  return element("table", {},
    element("thead", {}, element("tr", {}, heads.map((head, i) => cell("th", head, i)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((value, i) => cell("td", value, i))))),
  );
}

// Parts of a whole, each a fraction of 1; the label is for screen readers.
export function bar(parts, label) {
  return element("div", { class: "bar", role: "img", "aria-label": label, title: label },
    parts.map((part) => {
      const piece = element("i");
      piece.style.width = `${100 * Math.max(0, Math.min(1, part))}%`;
      return piece;
    }));
}

export function link(text, onclick) {
  return element("button", { class: "link", type: "button", onclick }, text);
}

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

export function more(left) {
  return left > 0 ? element("li", { class: "quiet" }, `and ${left.toLocaleString("en")} more`) : null;
}

// Paper and the dark mode have other colours, and what is drawn on a canvas has to be drawn again.
export function onColours(draw) {
  for (const query of ["print", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", draw);
}
