// Slots: how a topic routes its keys, its re-routes, and the busiest slots of a sample.

import { ask, topicPath } from "./ask.js";
import { preview } from "./bytes.js";
import { bar, fact, facts, h, notice, number, plural, sum, table } from "./dom.js";

const BUSIEST = [
  ["Partition", "n"],
  ["Slot", "n"],
  ["Records", "n", "of the sample"],
  ["Share of its partition", "n"],
  ["Different keys", "n wide"],
  ["Busiest keys", "code"],
];

export async function slots({ topic, signal }) {
  const found = await ask(topicPath(topic, "/slots"), {}, signal);
  return h("div", null, routed(found), found.reroutes.length ? reroutes(found) : null, busiest(found, `/topics/${encodeURIComponent(topic)}`));
}

function routed({ routing, partitions, pending_weights: pending }) {
  const waits = pending ? notice(`Before the next write, the topic is re-routed to the weights ${pending.map(String).join(", ")}.`) : null;
  if (!routing) return h("div", null, waits, notice(`The hash of a key modulo ${number(partitions)} is its partition: this topic was never re-routed. The slots below are those into which its first re-route would divide the keys.`));
  const closed = routing.closed.map(String).join(", ");
  return h(
    "div",
    null,
    facts(fact("Routing epoch", number(routing.epoch)), fact("Slots", number(routing.slots)), fact("Partitions", number(partitions)), fact("Closed partitions", closed || "none")),
    waits,
  );
}

function reroutes({ reroutes: newest, routing }) {
  const rows = newest.map((each) => [
    number(each.version),
    number(each.slots),
    `${each.to.join(", ")}${each.partitions > each.to.length ? ` and ${number(each.partitions - each.to.length)} more` : ""}`,
  ]);
  return h(
    "section",
    null,
    h("h2", null, "Re-routes"),
    h("p", { class: "sums" }, `${plural(routing.reroutes, "re-route")} with records from before${rows.length < routing.reroutes ? `, of which the newest ${rows.length}` : ""}. Readers of a key get its records in order nevertheless.`),
    table("Re-routes", [["Version", "n"], ["Slots moved", "n"], ["To partitions", ""]], rows, { class: "narrow" }),
  );
}

function busiest({ hot, sampled, with_slots: of }, path) {
  const records = sum(sampled.map(([, count]) => count));
  const rows = hot.map((each) => [
    h("a", { href: `${path}/records?partition=${each.partition}` }, String(each.partition)),
    number(each.slot),
    number(each.records),
    bar(`${(100 * each.share).toFixed(1)} %`, each.share, 1),
    number(each.keys),
    each.busiest.map(([key, count], place) => [place ? ", " : "", h("bdi", null, preview(key, 40)), ` (${number(count)})`]),
  ]);
  return h(
    "section",
    null,
    h("h2", null, "Busiest slots"),
    h(
      "p",
      { class: "sums" },
      `A sample: ${plural(records, "record")} with keys, about the newest 1,000 of each partition since its last cut. `,
      sampled.length < of ? `It has the ${number(sampled.length)} partitions with the most of these, of ${number(of)} with slots. ` : "",
    ),
    rows.length ? table("Busiest slots", BUSIEST, rows) : notice("There are no records with keys since then."),
  );
}
