// Commits: a picture of the newest, and a list.

import { ask, topicPath } from "./ask.js";
import { ago, failed, h, number, passed, plural, s, shown, size, sized, table, when } from "./dom.js";

const COLUMNS = [
  ["Version", "n"],
  ["Committed (UTC)", "t"],
  ["Age", "t wide"],
  ["Operation", ""],
  ["Records", "n"],
  ["Bytes", "n"],
  ["Segments", "n", "added and removed"],
  ["Epoch", "n wide"],
  ["Query", "code wide"],
  ["Writer", "wide"],
  ["txn", "code wide"],
];

export async function commits({ topic, query, signal, note }) {
  const before = query.get("before");
  const found = await ask(topicPath(topic, "/commits"), { before }, signal);
  const path = `/topics/${encodeURIComponent(topic)}/commits`;
  const rows = found.commits.map((each) => [
    number(each.version),
    when(each.time),
    h("span", { class: "muted" }, ago(each.time)),
    h("span", { class: "operation", "data-operation": each.operation }, each.operation),
    number(each.records),
    sized(each.bytes),
    `+${number(each.segments)}${each.removed ? ` −${number(each.removed)}` : ""}`,
    each.epoch === null ? "" : number(each.epoch),
    each.query === null ? "" : h("span", { class: "clip", title: each.query }, shown(each.query)),
    h("span", { class: "clip", title: each.writer }, shown(each.writer)),
    h("span", { class: "clip", title: each.txn }, each.txn),
  ]);
  return h(
    "div",
    null,
    h("p", { class: "sums" }, `${plural(rows.length, "commit")}${before ? ` before version ${number(before)}` : ", the newest first"}`),
    rows.length > 1 ? bars(found.commits) : null,
    table("Commits", COLUMNS, rows),
    h(
      "div",
      { class: "pager" },
      before ? h("a", { class: "button", href: path }, "Newest") : null,
      found.next === null ? h("span", { class: "muted" }, "Older commits do not exist, or their files have been deleted.") : h("a", { class: "button", href: `${path}?before=${found.next}` }, "Older"),
    ),
  );
}

/** Operations that bring records to the topic; the others only rewrite or delete. */
const ADDS = new Set(["create", "write"]);

/** The records that each commit added, the oldest at the left. One that added none is a mark on the axis. */
function bars(commits) {
  const all = [...commits].reverse();
  const added = all.map((each) => (ADDS.has(each.operation) ? Number(each.records) : 0));
  const most = Math.max(1, ...added);
  const width = 100 / all.length;
  const others = [...new Set(all.filter((each) => !ADDS.has(each.operation)).map((each) => each.operation))].sort();
  return h(
    "figure",
    null,
    h(
      "div",
      { class: "chart", role: "img", "aria-label": `Records that each commit added, at most ${number(most)}` },
      s(
        "svg",
        { viewBox: "0 0 100 100", preserveAspectRatio: "none" },
        all.map((each, place) => {
          const adds = ADDS.has(each.operation);
          const height = adds ? Math.max((100 * added[place]) / most, added[place] ? 1.5 : 0) : 5;
          const did = `${adds ? "" : "rewrote or deleted: "}${plural(each.records, "record")}, ${size(each.bytes)}`;
          return s("rect", { x: place * width + width * 0.08, width: width * 0.84, y: 100 - height, height, "data-operation": each.operation }, s("title", null, `version ${number(each.version)}, ${when(each.time)}: ${each.operation}, ${did}`));
        }),
      ),
    ),
    h("figcaption", null, h("span", null, when(all[0].time)), h("span", null, `records that each commit added, at most ${number(most)}`), h("span", null, when(all.at(-1).time))),
    others.length ? h("p", { class: "legend" }, "No records added: ", others.map((each) => h("span", { class: "key-of", "data-operation": each }, each))) : null,
  );
}
