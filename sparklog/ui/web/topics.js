// All topics, and one topic: partitions, skew, configuration.

import { ask, askLines, topicPath } from "./ask.js";
import { bar, cells, compare, fact, facts, h, notice, number, passed, plural, s, say, shown, size, sized, sum, table, when } from "./dom.js";

const ROWS_MAX = 500;
const ROWS_FIRST = 60;
/** Below more bars, numbers have no room. */
const LABELS_MAX = 16;
/** The topics as they were last read, which are shown until they are read again. */
let kept = new Map();

const COLUMNS = [
  { title: "Topic", key: "topic", cell: (each) => h("a", { href: `/topics/${encodeURIComponent(each.topic)}` }, h("bdi", null, each.topic)) },
  { title: "Partitions", key: "partitions", kind: "n wide", cell: (each) => number(each.partitions) },
  { title: "Records", key: "records", kind: "n", cell: (each, most) => bar(number(each.records), each.records, most.records) },
  { title: "Bytes", key: "bytes", kind: "n", cell: (each, most) => bar(sized(each.bytes), each.bytes, most.bytes) },
  { title: "View bytes", key: "view_bytes", kind: "n wide", hint: "Copies in the Kafka view, and its indexes", cell: (each) => sized(each.view_bytes) },
  { title: "Segments", key: "segments", kind: "n wide", cell: (each) => number(each.segments) },
  { title: "From (UTC)", key: "min_timestamp", kind: "t wide", cell: (each) => when(each.min_timestamp) },
  { title: "To (UTC)", key: "max_timestamp", kind: "t wide", cell: (each) => when(each.max_timestamp) },
  { title: "Version", key: "version", kind: "n wide", cell: (each) => number(each.version) },
  { title: "Committed", key: "committed_at", kind: "t", cell: (each) => passed(each.committed_at) },
];

export async function topics({ query, note, begin, signal }) {
  const all = new Map(kept);
  const read = new Map();
  const state = { q: query.get("q") || "", sort: query.get("sort") || "topic", down: query.get("dir") === "down", rows: ROWS_MAX };
  if (!COLUMNS.some(({ key }) => key === state.sort)) state.sort = "topic";
  let expected = 0;

  const search = h("input", { type: "search", placeholder: "Filter topics", "aria-label": "Filter topics", value: state.q, title: "Key: /", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    state.q = search.value;
    draw();
  });
  const sums = h("p", { class: "sums" });
  const progress = h("progress", { "aria-label": "Topics read" });
  const body = h("tbody");
  const heads = COLUMNS.map(({ title, key, kind, hint }) =>
    h("th", { scope: "col", class: kind, title: hint }, h("button", { type: "button", class: "sort", onclick: () => sortBy(key) }, title)),
  );
  const more = h("button", { type: "button", class: "more", onclick: () => { state.rows *= 4; draw(); } });

  function sortBy(key) {
    if (state.sort === key) state.down = !state.down;
    else Object.assign(state, { sort: key, down: key !== "topic" });
    draw();
  }

  function draw(rows = state.rows) {
    note({ q: state.q, sort: state.sort === "topic" ? "" : state.sort, dir: state.down ? "down" : "" });
    heads.forEach((head, place) => {
      if (COLUMNS[place].key === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const wanted = state.q.toLowerCase();
    const found = [...all.values()].filter((each) => each.topic.toLowerCase().includes(wanted)).sort(order);
    const good = found.filter((each) => !each.error);
    const most = { records: Math.max(0, ...good.map((each) => Number(each.records))), bytes: Math.max(0, ...good.map((each) => Number(each.bytes))) };
    body.replaceChildren(...found.slice(0, rows).map((each) => row(each, most)));
    more.hidden = found.length <= state.rows;
    more.textContent = `Show more (${plural(found.length - state.rows, "topic")})`;
    const damaged = found.length - good.length;
    const total = (key) => sum(good.map((each) => each[key]));
    sums.replaceChildren(
      `${wanted ? `${number(found.length)} of ${plural(all.size, "topic")}` : plural(found.length, "topic")} · ${plural(total("partitions"), "partition")} · ${plural(total("records"), "record")} · ${size(total("bytes"))}`,
      damaged ? h("span", { class: "bad" }, ` · ${number(damaged)} cannot be read`) : "",
    );
  }

  function order(one, other) {
    const byName = one.topic < other.topic ? -1 : 1;
    const found = state.sort === "topic" ? byName : compare(one[state.sort], other[state.sort]);
    if (found === 0) return byName;
    return state.down ? -found : found;
  }

  function row(each, most) {
    if (!each.error) return h("tr", null, cells(COLUMNS.map(({ title, kind }) => [title, kind]), COLUMNS.map(({ cell }) => cell(each, most))));
    return h(
      "tr",
      { class: "damaged" },
      h("th", { scope: "row" }, COLUMNS[0].cell(each)),
      h("td", { colspan: COLUMNS.length - 1 }, h("strong", null, each.error.condition), " ", h("bdi", null, shown(each.error.text))),
    );
  }

  const content = [
    h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Topics"), sums, h("div", { class: "tools" }, search)),
    progress,
    h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Topics" }, h("table", { class: "topics" }, h("caption", { class: "unseen" }, "Topics"), h("thead", null, h("tr", null, heads)), body)),
    more,
  ];
  const whole = h("div", null, content);
  let drawn = 0;
  await askLines("/api/topics", signal, (lines) => {
    if (!expected && lines[0]?.root !== undefined) {
      expected = lines.shift().topics;
      progress.max = Math.max(1, expected);
      begin(whole);
    }
    for (const each of lines) {
      read.set(each.topic, each);
      all.set(each.topic, each);
    }
    progress.value = read.size;
    progress.hidden = read.size >= expected;
    // A screen of what is there is drawn a few times a second, not all of it with each line.
    if (performance.now() - drawn > 300 && read.size < expected) {
      draw(ROWS_FIRST);
      drawn = performance.now();
    }
  });
  kept = read;
  for (const name of all.keys()) if (!read.has(name)) all.delete(name);
  progress.hidden = true;
  draw();
  if (!all.size) body.replaceChildren(h("tr", null, h("td", { colspan: COLUMNS.length, class: "muted" }, "This root has no topics.")));
  say(plural(all.size, "topic"));
  return null;
}

export async function overview({ topic, query, note, signal }) {
  const found = await ask(topicPath(topic), {}, signal);
  const path = `/topics/${encodeURIComponent(topic)}`;
  const state = { sort: "partition", down: false, rows: ROWS_MAX };
  const counts = found.partitions.map((each) => Number(each.records));
  const total = counts.reduce((sum, count) => sum + count, 0);
  const mean = total / counts.length;
  const most = Math.max(...counts);
  const largest = found.partitions[counts.indexOf(most)];
  const empty = counts.filter((count) => count === 0).length;

  const columns = [
    ["Partition", "n", "partition", (each) => h("a", { href: `${path}/records?partition=${each.partition}` }, String(each.partition))],
    ["Start", "n wide", "start", (each) => number(each.start)],
    ["End", "n", "end", (each) => number(each.end)],
    ["Records", "n", "records", (each) => bar(number(each.records), each.records, most)],
    ["Bytes", "n", "bytes", (each) => sized(each.bytes)],
    ["Segments", "n", "segments", (each) => h("a", { href: `${path}/segments?partition=${each.partition}` }, number(each.segments))],
    ["From (UTC)", "t wide", "min_timestamp", (each) => when(each.min_timestamp)],
    ["To (UTC)", "t wide", "max_timestamp", (each) => when(each.max_timestamp)],
  ];
  if (found.routing) columns.splice(3, 0, ["Slots", "n", "slots", (each) => (each.weight ? number(each.slots) : h("span", { class: "muted" }, "closed"))]);
  const body = h("tbody");
  const heads = columns.map(([title, kind, key]) =>
    h("th", { scope: "col", class: kind }, h("button", { type: "button", class: "sort", onclick: () => { Object.assign(state, state.sort === key ? { down: !state.down } : { sort: key, down: key !== "partition" }); draw(); } }, title)),
  );
  const more = h("button", { type: "button", class: "more", onclick: () => { state.rows *= 4; draw(); } });
  function draw() {
    heads.forEach((head, place) => {
      if (columns[place][2] === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const rows = [...found.partitions].sort((one, other) => compare(one[state.sort], other[state.sort]) * (state.down ? -1 : 1) || one.partition - other.partition);
    body.replaceChildren(...rows.slice(0, state.rows).map((each) => h("tr", null, cells(columns.map(([title, kind]) => [title, kind]), columns.map(([, , , cell]) => cell(each))))));
    more.hidden = rows.length <= state.rows;
    more.textContent = `Show more (${plural(rows.length - state.rows, "partition")})`;
  }
  draw();

  return h(
    "div",
    null,
    facts(
      fact("Records", number(found.records)),
      fact("Bytes", sized(found.bytes)),
      fact("Copies in the Kafka view", sized(found.view_bytes)),
      fact("Per record", found.records ? size(Number(found.bytes) / Number(found.records)) : "–"),
      fact("Partitions", number(found.partitions.length)),
      found.routing ? fact("Routing epoch", h("a", { href: `${path}/slots` }, number(found.routing.epoch)), " ", h("span", { class: "muted" }, plural(found.routing.slots, "slot"))) : null,
      fact("Segments", number(found.segments)),
      fact("Batches", number(found.batches)),
      found.waiting && Number(found.waiting.files) ? fact("Wait for deletion", sized(found.waiting.bytes), " ", h("span", { class: "muted" }, plural(found.waiting.files, "file"))) : null,
      fact("From (UTC)", when(found.min_timestamp)),
      fact("To (UTC)", when(found.max_timestamp)),
      fact("Version", number(found.version), " ", h("span", { class: "muted" }, passed(found.committed_at))),
    ),
    h(
      "section",
      null,
      h("h2", null, "Skew"),
      total
        ? h(
            "p",
            { class: "sums" },
            `Partition ${largest.partition} is the largest, ${(most / mean).toFixed(2)}× the mean of ${number(Math.round(mean))} records. `,
            empty ? `${plural(empty, "partition")} ${empty === 1 ? "is" : "are"} empty.` : "No partition is empty.",
          )
        : notice("There are no records."),
      total && counts.length > 1 ? skew(counts, mean) : null,
    ),
    h("section", null, h("h2", null, "Partitions"), h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Partitions" }, h("table", null, h("caption", { class: "unseen" }, "Partitions"), h("thead", null, h("tr", null, heads)), body)), more),
    h("section", null, h("h2", null, "Configuration"), table("Configuration", [["Key", "code"], ["Value", "code"]], [...Object.entries(found.config), ["topic id", found.id]].map((row) => row.map((text) => shown(text))), { class: "narrow" })),
  );
}

/** Bars of the records of each partition, with a line at the mean, and their partitions below. If there are many partitions, a bar shows the largest of some neighbours. */
function skew(counts, mean) {
  const step = Math.ceil(counts.length / 200);
  const bars = [];
  for (let first = 0; first < counts.length; first += step) bars.push([first, Math.max(...counts.slice(first, first + step))]);
  const most = Math.max(...counts);
  const width = 100 / bars.length;
  const css = { "max-width": `${Math.max(240, bars.length * 56)}px` };
  const chart = h(
    "div",
    { class: "chart skew", role: "img", "aria-label": "Records of each partition; the table below has the numbers", css },
    s(
      "svg",
      { viewBox: "0 0 100 100", preserveAspectRatio: "none" },
      bars.map(([first, count], place) =>
        s("rect", { class: count > 1.5 * mean ? "high" : null, x: place * width + width * 0.1, width: width * 0.8, y: 100 - (100 * count) / most, height: (100 * count) / most }, s("title", null, `${step > 1 ? `partitions ${first} to ${Math.min(first + step, counts.length) - 1}: at most ` : `partition ${first}: `}${number(count)} records`)),
      ),
      s("line", { x1: 0, x2: 100, y1: 100 - (100 * mean) / most, y2: 100 - (100 * mean) / most, class: "mean" }),
    ),
  );
  const labels = (kind, texts) => h("div", { class: `labels ${kind}`, css, "aria-hidden": "true" }, texts.map((text) => h("span", null, text)));
  const below =
    bars.length > LABELS_MAX
      ? labels("ends", ["partition 0", `partition ${counts.length - 1}`])
      : [labels("counts", bars.map(([, count]) => number(count))), labels("places", bars.map(([first]) => (bars.length > LABELS_MAX / 2 ? String(first) : `partition ${first}`)))];
  return h("div", null, chart, below);
}
