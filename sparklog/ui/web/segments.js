// Segments: a picture of many partitions, and a list of one.

import { ask, topicPath } from "./ask.js";
import { compare, fact, facts, h, less, number, plural, s, size, sized, table, when } from "./dom.js";

export async function segments({ topic, query, signal }) {
  const partition = query.get("partition") || "";
  const found = await ask(topicPath(topic, "/segments"), { partition, first: query.get("first") }, signal);
  const path = `/topics/${encodeURIComponent(topic)}/segments`;
  return partition ? list(found, path, topic) : picture(found, path);
}

function picture(found, path) {
  const rows = found.map;
  const runs = rows.flatMap((row) => row.runs);
  const [low] = rows.map((row) => row.start).sort(compare);
  const high = rows.map((row) => row.end).sort(compare).at(-1);
  const span = Math.max(1, Number(less(high, low)));
  const times = runs.map((run) => Number(run[4])).filter((time) => time >= 0);
  const [oldest, newest] = [Math.min(...times), Math.max(...times)];
  const age = (time) => (times.length && newest > oldest && time >= 0 ? (time - oldest) / (newest - oldest) : 1);
  const last = found.first + rows.length - 1;
  return h(
    "div",
    null,
    h("p", { class: "sums" }, `${plural(rows.reduce((sum, row) => sum + row.segments, 0), "segment")} of ${rows.length < found.partitions ? `partitions ${found.first} to ${last}` : plural(found.partitions, "partition")}, from offset ${number(low)} to ${number(high)}. The stronger the colour, the newer the records. Choose a partition for its list.`),
    h(
      "ul",
      { class: "map", "aria-label": "Segments of each partition" },
      rows.map((row) =>
        h("li", null, h(
          "a",
          { class: "map-row", href: `${path}?partition=${row.partition}` },
          h("span", { class: "n" }, h("span", { class: "unseen" }, "Partition "), String(row.partition)),
          s(
            "svg",
            { viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" },
            row.runs.map(([base, end, octets, count, time]) => {
              const x = (1000 * Number(less(base, low))) / span;
              const width = (1000 * Number(less(end, base))) / span;
              return s("rect", { x, width: Math.max(width - Math.min(1, width / 5), 0.4), y: 0, height: 10, "fill-opacity": 0.3 + 0.7 * age(Number(time)) }, s("title", null, `${count > 1 ? `${number(count)} segments: ` : ""}offsets ${number(base)} to ${number(end)}, ${size(octets)}, newest record ${when(time)}`));
            }),
          ),
          h("span", { class: "n muted" }, number(row.segments), h("span", { class: "unseen" }, row.segments === 1 ? " segment" : " segments")),
        )),
      ),
    ),
    found.partitions > rows.length
      ? h("div", { class: "pager" }, found.first > 0 ? h("a", { class: "button", href: `${path}?first=${Math.max(0, found.first - 64)}` }, "Lower partitions") : null, last + 1 < found.partitions ? h("a", { class: "button", href: `${path}?first=${last + 1}` }, "Higher partitions") : null)
      : null,
  );
}

const COLUMNS = [
  ["Base offset", "n"],
  ["End offset", "n"],
  ["Records", "n"],
  ["Batches", "n wide"],
  ["Bytes", "n"],
  ["From (UTC)", "t wide"],
  ["To (UTC)", "t"],
  ["Offsets", "wide", "dense: a record at every offset; tiled: batches without a gap between them; stored: there may be gaps"],
  ["Position", "n wide", "Byte of the data file"],
  ["Data file", "code"],
];

function list(found, path, topic) {
  const records = `/topics/${encodeURIComponent(topic)}/records`;
  const total = found.total;
  const rows = found.segments.map((each) => [
    h("a", { href: `${records}?partition=${found.partition}&order=oldest&from=${found.partition}:${each.base}` }, number(each.base)),
    number(each.end),
    number(each.records),
    number(each.batches),
    sized(each.bytes),
    when(each.min_timestamp),
    when(each.max_timestamp),
    each.offsets,
    number(each.position),
    h("bdi", { title: each.file }, each.file.replace(/^data\//, "")),
  ]);
  const after = found.first + rows.length;
  return h(
    "div",
    null,
    facts(
      fact("Partition", String(found.partition)),
      fact("Segments", number(total.segments)),
      fact("Start", number(found.start)),
      fact("End", number(found.end)),
      fact("Records", number(total.records)),
      fact("Batches", number(total.batches)),
      fact("Bytes", sized(total.bytes)),
      fact("Bytes per segment", total.segments ? size(Number(total.bytes) / total.segments) : "–"),
    ),
    h("div", { class: "pager" }, h("a", { class: "button", href: path }, "All partitions"), found.first > 0 ? h("a", { class: "button", href: `${path}?partition=${found.partition}&first=${Math.max(0, found.first - 200)}` }, "Before") : null, after < total.segments ? h("a", { class: "button", href: `${path}?partition=${found.partition}&first=${after}` }, `Next (${number(total.segments - after)} more)`) : null),
    table(`Segments of partition ${found.partition}`, COLUMNS, rows),
  );
}
