// Elements, and how numbers, times and errors are shown. Nothing from the log ever becomes HTML: texts are set as text.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `of` has attributes, `onclick` and the like, and `css` for properties of its style; children are nodes or texts. */
export function h(tag, of, ...children) {
  return filled(document.createElement(tag), of, children);
}

/** An element of a picture. */
export function s(tag, of, ...children) {
  return filled(document.createElementNS(SVG, tag), of, children);
}

function filled(element, of, children) {
  for (const [name, value] of Object.entries(of || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : name === "title" ? plain(String(value)) : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Integers that a JavaScript number cannot hold come as text. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  return (typeof value === "string" ? BigInt(value) : value).toLocaleString("en-US");
}

export function plural(count, word) {
  return `${number(count)} ${word}${Number(count) === 1 ? "" : "s"}`;
}

/** The difference of two offsets, exactly. */
export function less(one, other) {
  const found = BigInt(one) - BigInt(other);
  return found > BigInt(Number.MAX_SAFE_INTEGER) ? String(found) : Number(found);
}

/** The sum of integers, exactly. */
export function sum(values) {
  return values.reduce((total, value) => total + BigInt(value), 0n);
}

/** The order of two integers; one that is not there is before the others. */
export function compare(one, other) {
  const [a, b] = [one, other].map((value) => (value === null || value === undefined ? -(2n ** 64n) : BigInt(value)));
  return a < b ? -1 : a > b ? 1 : 0;
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];

export function size(octets) {
  if (octets === null || octets === undefined) return "–";
  let value = Number(octets);
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Bytes, with the exact number as a hint. */
export function sized(octets) {
  return h("span", { title: `${number(octets)} bytes` }, size(octets));
}

/** Milliseconds since 1970 as UTC. */
export function when(millis) {
  if (millis === null || millis === undefined || Number(millis) < 0) return "–";
  const date = new Date(Number(millis));
  if (Number.isNaN(date.getTime())) return `${number(millis)} ms`;
  const [day, time] = date.toISOString().replace("Z", "").split("T");
  return `${day} ${time.endsWith(".000") ? time.slice(0, -4) : time}`;
}

export function ago(millis) {
  if (millis === null || millis === undefined) return "–";
  const seconds = Math.round((Date.now() - Number(millis)) / 1000);
  if (seconds < 0) return "in the future";
  if (seconds < 5) return "just now";
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return seconds < 63072000 ? `${Math.round(seconds / 86400)} days ago` : `${(seconds / 31557600).toFixed(1)} years ago`;
}

export function passed(millis) {
  return h("time", { title: `${when(millis)} UTC` }, ago(millis));
}

/** A length of time in seconds. */
export function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 100) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 360000) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** A content with a bar behind it, as long as a value is beside the most of all. */
export function bar(content, value, most) {
  return h("span", { class: "bar", css: { "--part": `${most ? (100 * Number(value)) / Number(most) : 0}%` } }, content);
}

/** A table in a box that scrolls by itself. Columns: [title, class, hint]; rows are lists of cells, or elements. */
export function table(caption, columns, rows, of) {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      of,
      h("caption", { class: "unseen" }, caption),
      h("thead", null, h("tr", null, columns.map(([title, kind, hint]) => h("th", { scope: "col", class: kind, title: hint }, title)))),
      h("tbody", null, rows.map((row) => (row instanceof Node ? row : h("tr", null, cells(columns, row))))),
    ),
  );
}

export function cells(columns, row) {
  return row.map((cell, place) => h(place === 0 ? "th" : "td", { class: columns[place][1], scope: place === 0 ? "row" : null }, cell));
}

export function fact(name, ...value) {
  return h("div", null, h("dt", null, name), h("dd", null, ...value));
}

export function facts(...all) {
  return h("dl", { class: "facts" }, all);
}

export function notice(...content) {
  return h("p", { class: "notice" }, ...content);
}

export function failed(error) {
  return h(
    "div",
    { class: "failed", role: "alert" },
    h("strong", null, error.condition || error.name || "Error"),
    h("p", null, shown(error.message || String(error), true)),
  );
}

// Characters that are not printable: controls, formats (which turn the direction of writing, or have no width), and spaces that look like others.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/gu;

/** Text of the log, with escapes for what is not printable. With `lines`, line breaks and tabs stay. */
export function shown(text, lines = false) {
  const found = document.createDocumentFragment();
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const sign = match[0];
    if (sign === " " || (lines && (sign === "\n" || sign === "\t"))) continue;
    if (match.index > from) found.append(text.slice(from, match.index));
    found.append(h("span", { class: "escape" }, escaped(sign)));
    from = match.index + sign.length;
  }
  found.append(text.slice(from));
  return found;
}

/** The same for what has no elements: a hint, or the title of the window. */
export function plain(text) {
  return text.replace(HIDDEN, (sign) => (sign === " " || sign === "\n" ? sign : escaped(sign)));
}

function escaped(sign) {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[sign];
  if (known) return known;
  const hex = sign.codePointAt(0).toString(16);
  if (hex.length <= 2) return `\\x${hex.padStart(2, "0")}`;
  return hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** Says something to screen readers. */
export function say(text) {
  document.getElementById("said").textContent = text;
}
