// Records: pages forwards and backwards, a search, and one record opened.

import { ask, topicPath } from "./ask.js";
import { preview, whole } from "./bytes.js";
import { fact, facts, failed, h, notice, number, plural, say, shown, size, when } from "./dom.js";

const KEYS = ["partition", "key", "contains", "since", "until", "order", "from", "before", "limit"];
const SEARCH_PAGE = 100;
/** The labels of the form, by the words of the address, which errors of the server name. */
const LABELS = { partition: "Partition", from: "From offset", before: "From offset", since: "From time", until: "Until time", key: "Key", contains: "Key or value contains", order: "Order" };

export async function records(context) {
  const { topic, query, place, signal, go, note } = context;
  const path = `/topics/${encodeURIComponent(topic)}/records`;
  const asked = Object.fromEntries(KEYS.map((key) => [key, query.get(key) || ""]));
  if ((asked.since || asked.from) && !asked.order && !asked.before) asked.order = "oldest";
  const searched = asked.key || asked.contains;
  let found;
  try {
    found = await ask(topicPath(topic, "/records"), asked, signal);
  } catch (error) {
    if (error.name === "AbortError" || error.kind !== "call" || error.condition === "PARTLOG_TOPIC_NOT_FOUND") throw error;
    return h("div", null, form(context, path, asked, null), failed(ofForm(error))); // what was asked is wrong, and can be set right
  }
  const newest = (asked.order || "newest") === "newest";
  const openAt = query.get("open");

  const list = h("tbody");
  const columns = [["Partition", "n p"], ["Offset", "n"], ["Time (UTC)", "t"], ["Key", "key"], ["Value", "value"], ["Headers", "n h"]];
  const results = h(
    "div",
    { class: "scroll", role: "region", tabindex: 0, "aria-label": "Records" },
    h("table", { class: "records" }, h("caption", { class: "unseen" }, "Records"), h("thead", null, h("tr", null, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))), list),
  );
  let opened = null;

  function add(rows) {
    for (const row of rows) {
      const line = rowOf(row, () => toggle(row, line));
      list.append(line);
      if (`${row.partition}:${row.offset}` === openAt && !opened) toggle(row, line);
    }
  }

  function toggle(row, line) {
    const same = opened && opened.line === line;
    if (opened) {
      opened.detail.remove();
      opened.line.removeAttribute("data-open");
      opened.line.querySelector("button").setAttribute("aria-expanded", "false");
      opened = null;
    }
    if (!same) {
      const box = h("td", { colspan: columns.length }, h("span", { class: "muted" }, "Reading …"));
      opened = { line, detail: h("tr", { class: "detail" }, box) };
      line.after(opened.detail);
      line.setAttribute("data-open", "");
      line.querySelector("button").setAttribute("aria-expanded", "true");
      detail(context, row.partition, row.offset, box);
    }
    note({ ...asked, order: query.get("order"), open: same ? "" : `${row.partition}:${row.offset}` });
  }

  const bottom = h("div", { class: "pager" });
  const top = h("div", { class: "pager" });
  const status = h("p", { class: "sums" });
  const header = form(context, path, asked, found);
  const content = h("div", null, header, ...movedNotes(found), h("div", { class: "over" }, status, top), results, bottom);

  if (!searched) {
    add(newest ? [...found.rows].reverse() : found.rows);
    const base = { partition: asked.partition, since: asked.since, until: asked.until, limit: asked.limit };
    const links = () => [
      link("Newest", path, { ...base, order: "newest" }, found.newer !== null || !newest),
      link("Newer", path, { ...base, from: found.newer, order: newest ? "newest" : "oldest" }, found.newer !== null),
      link("Older", path, { ...base, before: found.older, order: newest ? "newest" : "oldest" }, found.older !== null),
      link("Oldest", path, { ...base, order: "oldest" }, found.older !== null || newest),
    ];
    top.append(...links());
    bottom.append(...links());
    if (found.most) results.before(notice(`The topic has ${number(found.partitions)} partitions, and at most ${found.most} are shown together: choose one, or search.`));
    status.append(`${plural(found.rows.length, "record")} of ${plural(found.offsets, "offset")}`, found.rows.length ? "" : asked.since || asked.until ? ". No record has such a time." : ". There is nothing here.");
    say(status.textContent);
    return content;
  }

  // A search goes on by itself until the page is full, or all was looked at.
  let next = found.next;
  let scanned = BigInt(found.scanned);
  let count = found.rows.length;
  let stopped = false;
  let wanted = SEARCH_PAGE;
  const progress = h("progress", { max: Math.max(1, Number(found.offsets)), value: Number(scanned), "aria-label": "Searched offsets" });
  const stop = h("button", { type: "button", onclick: () => (stopped = true) }, "Stop");
  const goOn = h("button", { type: "button", onclick: () => { wanted = count + SEARCH_PAGE; run(); } }, "Search on");
  const where = () => (found.searched === found.partitions ? "all partitions" : found.searched === 1 ? `partition ${found.ranges[0][0]}` : `the ${found.searched} partitions that may hold the key`);
  add(found.rows);

  function tell(running) {
    status.replaceChildren(`${plural(count, "record")} found in ${number(scanned)} of ${plural(found.offsets, "offset")} of ${where()}`);
    progress.value = Number(scanned);
    progress.hidden = !running;
    top.replaceChildren(...(running ? [progress, stop] : next ? [goOn] : []));
    bottom.replaceChildren(...(running || !next ? [] : [goOn.cloneNode(true)]));
    bottom.querySelector("button")?.addEventListener("click", () => goOn.click());
  }

  async function run() {
    stopped = false;
    while (next && count < wanted && !stopped && !signal.aborted) {
      tell(true);
      try {
        const part = await ask(topicPath(topic, "/records"), { ...asked, from: newest ? "" : next, before: newest ? next : "" }, signal);
        next = part.next;
        scanned += BigInt(part.scanned);
        count += part.rows.length;
        add(part.rows);
      } catch (error) {
        if (error.name === "AbortError") return;
        content.append(failed(error));
        break;
      }
    }
    tell(false);
    say(status.textContent);
  }
  tell(false);
  if (next && count < wanted) run();
  return content;
}

function addressFor(path, query) {
  const given = Object.entries(query).filter(([, value]) => value);
  return `${path}?${new URLSearchParams(given)}`;
}

function link(title, path, query, enabled) {
  return enabled ? h("a", { class: "button", href: addressFor(path, query) }, title) : h("span", { class: "button", "aria-disabled": "true" }, title);
}

function movedNotes(found) {
  return (found.moved || []).map(({ partition, asked, start, end }) =>
    notice(
      Number(asked) < Number(start)
        ? `Offset ${number(asked)} of partition ${partition} has expired: it starts at ${number(start)} now.`
        : `Offset ${number(asked)} of partition ${partition} does not exist: it ends at ${number(end)}.`,
    ),
  );
}

/** The offset that was asked for of one partition. */
function offsetOf({ from, partition }) {
  if (/^\d+$/.test(from)) return from;
  return /^\d+:\d+$/.test(from) && partition ? from.split(":")[1] : "";
}

function form({ go }, path, asked, found) {
  const field = (name, label, of, wide) => h("label", { class: wide || "" }, h("span", null, label), h("input", { name, value: asked[name], autocomplete: "off", spellcheck: "false", ...of }));
  const partition = h("input", { name: "partition", value: asked.partition, inputmode: "numeric", placeholder: "all", autocomplete: "off", "aria-label": found ? `Partition, from 0 to ${found.partitions - 1}` : "Partition" });
  const order = h("select", { name: "order" }, ["newest", "oldest"].map((each) => h("option", { value: each, selected: (asked.order || "newest") === each }, `${each} first`)));
  const element = h(
    "form",
    { class: "query", role: "search", "aria-label": "Records", novalidate: true },
    h("label", { class: "short" }, h("span", null, LABELS.partition), partition),
    h("label", { class: "short" }, h("span", null, LABELS.from), h("input", { name: "offset", inputmode: "numeric", autocomplete: "off", value: offsetOf(asked) })),
    field("since", `${LABELS.since} (UTC)`, { placeholder: "2024-05-01T12:00" }),
    field("until", `${LABELS.until} (UTC)`, { placeholder: "2024-05-01T13:00" }),
    field("key", LABELS.key, { placeholder: "text, or hex:00ff", type: "search" }),
    field("contains", LABELS.contains, { placeholder: "text, or hex:00ff", type: "search" }, "grow"),
    h("label", null, h("span", null, LABELS.order), order),
    h("button", { type: "submit", class: "primary" }, "Show"),
  );
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(element)].map(([name, value]) => [name, value.trim()]));
    const query = { partition: given.partition, since: given.since, until: given.until, key: given.key, contains: given.contains };
    if (given.order !== "newest" || given.since) query.order = given.order;
    // Without a partition, the server says whether one is needed.
    if (given.offset) query[given.order === "newest" && (given.key || given.contains) ? "before" : "from"] = given.partition ? `${given.partition}:${given.offset}` : given.offset;
    go(path, query);
  });
  // On a phone it would take half of the screen.
  const given = KEYS.some((key) => !["partition", "from", "before", "order", "limit"].includes(key) && asked[key]);
  return h("details", { class: "filters", open: innerWidth > 720 || given }, h("summary", null, "Search and filter"), element);
}

/** An error that names a field of the form, where the server names a word of the address. */
function ofForm(error) {
  error.message = error.message.replace(/^(Option )?`(\w+)`/, (whole, option, name) => (LABELS[name] ? `“${LABELS[name]}”` : whole));
  return error;
}

/** A line of the list. */
export function rowOf(row, toggle) {
  const title = toggle
    ? h("button", { type: "button", class: "link", "aria-expanded": "false", "data-row": "", onclick: (event) => { event.stopPropagation(); toggle(); } }, number(row.offset))
    : number(row.offset);
  const line = h(
    "tr",
    { class: toggle ? "can-open" : null },
    h("td", { class: "n p" }, String(row.partition)),
    h("td", { class: "n" }, title),
    h("td", { class: "t" }, when(row.time)),
    h("td", { class: "key" }, h("bdi", null, preview(row.key, 120))),
    h("td", { class: "value" }, h("bdi", null, preview(row.value))),
    h("td", { class: "n h", title: row.headers.map((each) => each.key?.text ?? "").join(", ").slice(0, 200) }, row.header_count ? number(row.header_count) : ""),
  );
  if (toggle) {
    line.addEventListener("click", () => {
      if (!String(getSelection())) toggle();
    });
  }
  return line;
}

/** All of one record, in a box. */
async function detail({ topic, signal }, partition, offset, box, parts = {}) {
  const place = `/records/${partition}/${offset}`;
  let found;
  try {
    found = await ask(topicPath(topic, place), parts, signal);
  } catch (error) {
    if (error.name !== "AbortError") box.replaceChildren(failed(error));
    return;
  }
  if (!found.value && found.time === undefined) {
    box.replaceChildren(notice("No record has this offset."));
    return;
  }
  const more = (name) => (from) => detail({ topic, signal }, partition, offset, box, { ...parts, [name]: from });
  const file = (name) => topicPath(topic, `${place}/bytes?column=${name}`);
  const segment = found.segment;
  box.replaceChildren(
    h(
      "div",
      { class: "record" },
      facts(
        fact("Partition", String(partition)),
        fact("Offset", number(offset)),
        fact("Time (UTC)", when(found.time), h("span", { class: "muted" }, found.appended ? " appended" : "")),
        fact("Milliseconds", String(found.time)),
        fact("Segment", h("a", { href: `/topics/${encodeURIComponent(topic)}/segments?partition=${partition}` }, `${number(segment.base)} to ${number(segment.end)}`)),
        fact("Link", h("a", { href: addressFor(`/topics/${encodeURIComponent(topic)}/records`, { partition, from: `${partition}:${offset}`, order: "oldest", open: `${partition}:${offset}` }) }, "this record")),
      ),
      h("p", { class: "file muted" }, h("bdi", null, segment.file)),
      whole("Key", found.key, more("key"), file("key")),
      whole("Value", found.value, more("value"), file("value")),
      found.headers.length
        ? h(
            "section",
            null,
            h("h2", { class: "part" }, "Headers"),
            h("table", { class: "headers" }, h("caption", { class: "unseen" }, "Headers"), h("tbody", null, found.headers.map(({ key, value }) => h("tr", null, h("th", { scope: "row", class: "key" }, h("bdi", null, preview(key, 500))), h("td", { class: "value" }, h("bdi", null, preview(value, 4000))))))),
            found.header_count > found.headers.length ? notice(`${plural(found.header_count - found.headers.length, "header")} more`) : null,
          )
        : null,
    ),
  );
}
