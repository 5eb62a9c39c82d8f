// Bytes of a record as text, as JSON, and as a hex dump.

import { h, number, shown, size } from "./dom.js";

const TOKENS_MAX = 40_000;
const INDENTS_MAX = 40;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/g;

/** Bytes as a list shows them: { size, text } or { size, hex }, in one line. */
export function preview(octets, longest = 300) {
  if (octets === null) return h("span", { class: "null" }, "null");
  const text = octets.text ?? octets.hex;
  const cut = text.slice(0, longest);
  const all = octets.text === undefined ? cut.length === 2 * octets.size : cut.length === text.length && !isCut(octets);
  return h(
    "span",
    { class: octets.text === undefined ? "hex" : "text", dir: "ltr" },
    octets.size === 0 ? h("span", { class: "null" }, "empty") : octets.text === undefined ? cut.replace(/(..)/g, "$1 ").trim() : shown(cut),
    all ? null : h("span", { class: "cut" }, `… ${size(octets.size)}`),
  );
}

function isCut(octets) {
  return octets.size > new TextEncoder().encode(octets.text).length;
}

export function bytesOf(hex) {
  const found = new Uint8Array(hex.length / 2);
  for (let at = 0; at < found.length; at += 1) found[at] = parseInt(hex.substr(2 * at, 2), 16);
  return found;
}

/** The text of a part of some bytes; null if it is not UTF-8. A character that was cut at the end of the part, or begins before it, is left out. */
export function textOf(octets, from, whole) {
  let begin = 0;
  let end = octets.length;
  while (from > 0 && begin < 3 && (octets[begin] & 0xc0) === 0x80) begin += 1;
  if (from + end < whole) {
    let back = 1;
    while (back < 4 && back < end && (octets[end - back] & 0xc0) === 0x80) back += 1;
    const lead = octets[end - back];
    if (lead >= 0xc0 && back < (lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2)) end -= back;
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(octets.subarray(begin, end));
  } catch {
    return null;
  }
}

/** JSON with line breaks and indents; null if it is not an object or a list. Numbers stay as they are written. */
export function json(text) {
  if (!/^\s*[{[]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(TOKEN);
  if (tokens.length > TOKENS_MAX) return null;
  const found = document.createDocumentFragment();
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, INDENTS_MAX))}`;
  tokens.forEach((token, place) => {
    const next = tokens[place + 1];
    if (token === "{" || token === "[") {
      depth += 1;
      found.append(token, next === "}" || next === "]" ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const before = tokens[place - 1];
      found.append(before === "{" || before === "[" ? "" : line(), token);
    } else if (token === ",") found.append(token, line());
    else if (token === ":") found.append(": ");
    else {
      const kind = token[0] === '"' ? (next === ":" ? "name" : "string") : "atom";
      found.append(h("span", { class: `json-${kind}` }, shown(token)));
    }
  });
  return found;
}

/** A hex dump. The first column is the position in the whole. */
export function dump(octets, from, width) {
  const lines = [];
  for (let at = 0; at < octets.length; at += width) {
    const part = [...octets.subarray(at, at + width)];
    const hex = part.map((octet) => octet.toString(16).padStart(2, "0"));
    const text = part.map((octet) => (octet >= 0x20 && octet < 0x7f ? String.fromCharCode(octet) : "·")).join("");
    const half = width / 2;
    const columns = `${hex.slice(0, half).join(" ").padEnd(3 * half - 1)}  ${hex.slice(half).join(" ").padEnd(3 * half - 1)}`;
    lines.push(`${(from + at).toString(16).padStart(8, "0")}  ${columns}  ${text}`);
  }
  return lines.join("\n");
}

/** Key or value of a record: { size, from, hex }, with a choice of how to show it. `more` asks for another part of it. */
export function whole(name, octets, more, file) {
  const title = h("h2", { class: "part" }, name);
  if (octets === null) return h("section", { class: "octets" }, h("div", { class: "octets-head" }, title, h("span", { class: "null" }, "null")));
  const body = h("pre", { tabindex: 0, dir: "ltr", "aria-label": name });
  const part = bytesOf(octets.hex);
  const text = textOf(part, octets.from, octets.size);
  const pretty = text !== null && octets.from === 0 && part.length === octets.size ? json(text) : null;
  const ways = [];
  if (pretty) ways.push(["JSON", () => json(text)]);
  if (text !== null) ways.push(["Text", () => shown(text, true)]);
  ways.push(["Hex", () => dump(part, octets.from, innerWidth < 640 ? 8 : 16)]);
  const buttons = ways.map(([label, make]) =>
    h("button", { type: "button", class: "way", "aria-pressed": "false", onclick: () => choose(label, make) }, label),
  );
  function choose(label, make) {
    body.replaceChildren(make());
    body.classList.toggle("dump", label === "Hex");
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === label));
  }
  choose(...ways[0]);
  const end = octets.from + part.length;
  const windows = [];
  if (part.length < octets.size) {
    const step = Math.max(part.length, 65_536);
    windows.push(
      h("button", { type: "button", disabled: octets.from === 0, onclick: () => more(0) }, "First part"),
      h("button", { type: "button", disabled: octets.from === 0, onclick: () => more(Math.max(0, octets.from - step)) }, "Part before"),
      h("span", { class: "range" }, `bytes ${number(octets.from)} to ${number(end)} of ${number(octets.size)}`),
      h("button", { type: "button", disabled: end >= octets.size, onclick: () => more(end) }, "Next part"),
    );
  }
  return h(
    "section",
    { class: "octets" },
    h(
      "div",
      { class: "octets-head" },
      title,
      h("span", { class: "muted", title: `${number(octets.size)} bytes` }, octets.size < 1000 ? `${octets.size} bytes` : `${size(octets.size)}`),
      h("span", { class: "ways", role: "group", "aria-label": `${name} as` }, buttons),
      h("a", { href: file, download: "", class: "quiet" }, "Download"),
    ),
    windows.length ? h("div", { class: "windows" }, windows) : null,
    body,
  );
}
