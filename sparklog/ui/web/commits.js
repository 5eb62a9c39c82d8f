// Commits: a picture of the newest, and a list.

import { ask, topicPath } from "./ask.js";
import { ago, failed, h, number, passed, plural, s, shown, size, sized, table, when } from "./dom.js";

const COLUMNS = [
  ["Version", "n"],
  ["Committed (UTC)", "t"],
  ["", "t wide"],
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

/** The records of each commit, the oldest at the left. */
function bars(commits) {
  const all = [...commits].reverse();
  const most = Math.max(1, ...all.map((each) => Number(each.records)));
  const width = 100 / all.length;
  return h(
    "figure",
    null,
    h(
      "div",
      { class: "chart", role: "img", "aria-label": "Records of each commit" },
      s(
        "svg",
        { viewBox: "0 0 100 100", preserveAspectRatio: "none" },
        all.map((each, place) => {
          const height = Math.max((100 * Number(each.records)) / most, each.records ? 1.5 : 0);
          return [
            s("rect", { x: place * width + width * 0.08, width: width * 0.84, y: 100 - height, height, "data-operation": each.operation }, s("title", null, `version ${number(each.version)}, ${when(each.time)}: ${each.operation}, ${plural(each.records, "record")}, ${size(each.bytes)}`)),
          ];
        }),
      ),
    ),
    h("figcaption", null, h("span", null, when(all[0].time)), h("span", null, `records of each commit, at most ${number(most)}`), h("span", null, when(all.at(-1).time))),
  );
}
