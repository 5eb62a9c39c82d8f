// Groups: where each reader is, and how far it is behind, now and over time.

import { ask } from "./ask.js";
import { fact, facts, h, lasting, notice, number, passed, plural, s, shown, sized, size, table, when } from "./dom.js";

const address = ({ group, home }) => `/group?${new URLSearchParams({ group, home })}`;

function state(each) {
  return h("span", { class: "state", title: "whether a consumer or a tracker runs it: one that ended said so, or wrote nothing for three minutes" }, h("span", { class: "light", "data-state": each.running ? "live" : "paused", "aria-hidden": "true" }), each.running ? "running" : "not running");
}

export async function groups({ signal }) {
  const head = h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Groups"));
  const found = await ask("/api/groups", {}, signal);
  if (found.table === null && !found.groups.length) {
    return h("div", null, head, notice("Positions of groups are in an offset table, outside of the root. Start the page with it: ", h("code", null, "sparklog ui ROOT --table PATH")));
  }
  head.append(h("p", { class: "sums" }, `${plural(found.groups.length + found.more, "group")} in `, found.table === null ? "the root" : h("code", null, found.table)));
  const rows = found.groups.map((each) => [
    h("a", { href: address(each) }, h("bdi", null, shown(each.group))),
    each.home,
    each.running === null ? "" : state(each),
    each.errors.length ? h("span", { class: "bad", title: each.errors.map((error) => error.text).join("\n") }, each.errors[0].condition) : number(each.records),
    each.errors.length ? "" : sized(each.bytes),
    each.errors.length ? "" : lasting(each.seconds),
    each.topics.join(", "),
    number(each.generation),
    each.committed_at === null ? "–" : passed(each.committed_at),
  ]);
  const unknown = found.groups.filter((each) => each.running === null).length;
  return h(
    "div",
    null,
    head,
    table("Groups", [["Group", ""], ["Home", "wide", "table: rows of the offset table; topic: records in the root, which sparklog serve keeps for Kafka's clients"], ["State", ""], ["Lag, records", "n"], ["Bytes", "n"], ["Time", "n", "from the first unread record to the newest one"], ["Topics", "wide"], ["Generation", "n wide"], ["Committed", "t"]], rows),
    rows.length ? null : notice(found.exists ? "The table has no groups." : "There is no Delta table at this path yet: the first commit of a consumer or a tracker creates it."),
    ...found.unreadable.map((error) => notice("Groups in the root cannot be read: ", error)),
    unknown ? notice(`${plural(unknown, "group")} could not be looked at in time: choose one to see it.`) : null,
  );
}

export async function group({ query, signal }) {
  const name = query.get("group") || "";
  const found = await ask("/api/group", { group: name, home: query.get("home") || "table" }, signal);
  const rows = found.rows.map((each) => {
    const records = `/topics/${encodeURIComponent(each.topic)}/records?partition=${each.partition}`;
    return [
      h("a", { href: `/topics/${encodeURIComponent(each.topic)}` }, h("bdi", null, each.topic)),
      String(each.partition),
      each.offset === null ? "–" : h("a", { href: `${records}&order=oldest&from=${each.partition}:${each.offset}` }, number(each.offset)),
      number(each.end),
      number(each.records),
      sized(each.bytes),
      lasting(each.seconds),
      each.committed_at === null ? "–" : passed(each.committed_at),
      found.members.length
        ? h("span", { class: "clip", title: each.waits_for ? `waits for ${shown(each.waits_for)}` : each.owner }, shown(each.owner || "–"), each.waits_for ? " …" : "")
        : h("span", { class: "clip", title: each.metadata }, shown(each.metadata || each.query || "")),
    ];
  });
  const members = found.members.map((each) => [
    h("span", { class: "clip", title: each.instance ? `instance ${shown(each.instance)}` : each.id }, shown(each.id)),
    h("span", { class: "clip", title: each.client }, shown(each.client || "–")),
    h("span", { class: "clip" }, shown(each.host)),
    number(each.partitions),
    number(each.lag),
    number(each.to_take),
    number(each.to_release),
    each.heartbeat === null ? "–" : passed(each.heartbeat),
  ]);
  return h(
    "div",
    null,
    h("div", { class: "of-topic" }, h("h1", { tabindex: -1 }, h("a", { href: "/groups", class: "crumb" }, "Groups"), h("span", { class: "slash", "aria-hidden": "true" }, "/"), h("bdi", null, shown(name)))),
    found.errors.map((error) => h("div", { class: "failed" }, h("strong", null, error.condition), h("p", null, shown(error.text)))),
    facts(
      fact("State", state(found)),
      fact("Lag, records", number(found.records)),
      fact("Lag, bytes", sized(found.bytes)),
      fact("Lag, time", lasting(found.seconds)),
      fact("Generation", number(found.generation)),
      fact("Committed", passed(found.committed_at)),
      fact("Positions committed", number(found.commits)),
    ),
    h("section", null, h("h2", null, "Lag over time"), found.history.length > 1 ? line(found.history) : notice("There are too few commits for a line.")),
    members.length
      ? h(
          "section",
          null,
          h("h2", null, "Members"),
          table("Members", [["Member", ""], ["Client", "wide", "the name that a client of a server gave itself"], ["Host", "wide"], ["Partitions", "n"], ["Lag, records", "n"], ["Waits for", "n", "how many partitions others still have that it is to take"], ["Gives up", "n", "how many of its partitions others are to take"], ["Heartbeat", "t"]], members),
        )
      : null,
    h(
      "section",
      null,
      h("h2", null, "Positions"),
      table("Positions", [["Topic", ""], ["Partition", "n"], ["Offset", "n"], ["End", "n"], ["Lag, records", "n"], ["Bytes", "n"], ["Time", "n wide"], ["Committed", "t"], [found.members.length ? "Owner" : "Metadata", "wide"]], rows),
      found.more_rows ? notice(`${plural(found.more_rows, "partition")} more`) : null,
    ),
  );
}

/** A line of points [milliseconds, records], with what is under the pointer below it. */
function line(points) {
  const [begin, end] = [points[0][0], points.at(-1)[0]];
  const most = Math.max(1, ...points.map(([, count]) => Number(count)));
  const x = (at) => (end > begin ? (1000 * (at - begin)) / (end - begin) : 0);
  const y = (count) => 100 - (96 * Number(count)) / most;
  // The lag after a commit holds until the next one.
  const path = points.map(([at, count], place) => (place ? `H${x(at).toFixed(2)}V${y(count).toFixed(2)}` : `M${x(at).toFixed(2)} ${y(count).toFixed(2)}`)).join("");
  const pointer = s("line", { class: "pointer", y1: 0, y2: 100, visibility: "hidden" });
  const middle = h("span", null, `records behind, at most ${number(most)}`);
  const chart = h(
    "div",
    { class: "chart line", role: "img", "aria-label": `Lag over time: at most ${number(most)} records, ${number(points.at(-1)[1])} at the end` },
    s("svg", { viewBox: "0 0 1000 101", preserveAspectRatio: "none" }, s("path", { class: "area", d: `${path}V100H0Z` }), s("path", { class: "stroke", d: path }), pointer),
  );
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    const at = begin + ((event.clientX - box.left) / box.width) * (end - begin);
    const found = points.findLast(([time]) => time <= at) || points[0];
    pointer.setAttribute("x1", x(found[0]));
    pointer.setAttribute("x2", x(found[0]));
    pointer.setAttribute("visibility", "visible");
    middle.textContent = `${when(found[0])}: ${plural(found[1], "record")} behind`;
  });
  chart.addEventListener("pointerleave", () => {
    pointer.setAttribute("visibility", "hidden");
    middle.textContent = `records behind, at most ${number(most)}`;
  });
  return h("figure", null, chart, h("figcaption", null, h("span", null, when(begin)), middle, h("span", null, when(end))));
}
