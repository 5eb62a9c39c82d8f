// A live tail: records as they are committed, the newest first.

import { Failure, ask, refusal, topicPath } from "./ask.js";
import { failed, h, notice, number, plural, say } from "./dom.js";
import { rowOf } from "./records.js";

const ROWS_MAX = 500;
const AGAIN_MS = 2_000;
/** The most partitions that the server follows together. */
const TOGETHER_MAX = 256;

export async function tail({ topic, query, signal, go }) {
  const partition = query.get("partition") || "";
  const positions = new Map();
  let id = "";
  let source = null;
  let following = true;
  let again = 0;
  let received = 0;
  let skipped = 0;
  let recent = [];
  const about = await ask(topicPath(topic), {}, signal);
  const tooMany = !partition && about.partitions.length > TOGETHER_MAX;

  const waiting = h("tr", { class: "waiting" }, h("td", { colspan: 6 }, "Waiting for the next commit."));
  const list = h("tbody", null, waiting);
  const columns = [["Partition", "n p"], ["Offset", "n"], ["Time (UTC)", "t"], ["Key", "key"], ["Value", "value"], ["Headers", "n h"]];
  const light = h("span", { class: "light", "aria-hidden": "true" });
  const state = h("span", { class: "state" }, "connecting");
  const counts = h("span", { class: "muted counts" });
  const problem = h("div");
  const pause = h("button", { type: "button", class: "primary", onclick: () => { following = !following; following ? start() : stop("paused"); } }, "Pause");
  const clear = h("button", { type: "button", onclick: () => { list.replaceChildren(waiting); tell(); } }, "Clear");
  const choice = h("select", { "aria-label": "Partition", onchange: () => go(`/topics/${encodeURIComponent(topic)}/tail`, { partition: choice.value }) }, h("option", { value: "" }, tooMany ? "choose a partition" : "all partitions"), about.partitions.slice(0, 10_000).map((each) => h("option", { value: each.partition, selected: partition === String(each.partition) }, `partition ${each.partition}`)));

  function tell() {
    const now = performance.now();
    recent = recent.filter(([at]) => now - at < 5_000);
    const rate = recent.reduce((sum, [, count]) => sum + count, 0) / 5;
    counts.textContent = `${plural(received, "record")} received${skipped ? `, ${number(skipped)} skipped` : ""}, ${number(list.querySelectorAll("tr:not(.gap, .waiting)").length)} shown${source && rate ? ` · ${rate < 10 ? rate.toFixed(1) : number(Math.round(rate))} a second` : ""}`;
  }

  function set(name) {
    state.textContent = name;
    light.dataset.state = name;
    pause.textContent = following ? "Pause" : "Resume";
    tell();
  }

  function stop(name) {
    clearTimeout(again);
    source?.close();
    source = null;
    set(name);
  }

  function start() {
    clearTimeout(again);
    // A browser has few connections to a server: a page in the background does not keep one.
    if (document.hidden) return set("in the background");
    const from = [...positions].map(([each, offset]) => `${each}:${offset}`).join(",");
    const asked = { ...(partition && { partition }), ...(from && { from, id }) };
    source = new EventSource(`${topicPath(topic, "/tail")}?${new URLSearchParams(asked)}`);
    set("connecting");
    source.addEventListener("begin", (event) => {
      const begun = JSON.parse(event.data);
      id = begun.id;
      take(begun.positions);
      problem.replaceChildren();
      set("live");
      say("live");
    });
    source.addEventListener("records", (event) => {
      const found = JSON.parse(event.data);
      received += found.rows.length;
      waiting.remove();
      recent.push([performance.now(), found.rows.length]);
      for (const row of found.rows.slice(-ROWS_MAX)) {
        const line = rowOf(row);
        line.classList.add("new");
        list.prepend(line);
      }
      for (const row of found.rows) positions.set(String(row.partition), String(BigInt(row.offset) + 1n));
      take(found.positions);
      if (found.skipped) {
        skipped += Number(found.skipped);
        list.prepend(h("tr", { class: "gap" }, h("td", { colspan: columns.length }, `${plural(found.skipped, "record")} before these were skipped: more came at once than a page can show`)));
      }
      while (list.childElementCount > ROWS_MAX) list.lastElementChild.remove();
      tell();
    });
    source.addEventListener("failed", (event) => {
      following = false;
      stop("stopped");
      problem.replaceChildren(failed(new Failure(JSON.parse(event.data).error)));
    });
    source.addEventListener("error", async () => {
      const refused = source.readyState === EventSource.CLOSED;
      // The browser would begin at the end again. The page goes on where it is.
      stop("not connected");
      again = setTimeout(() => !signal.aborted && start(), AGAIN_MS);
      const why = refused ? await refusal(topicPath(topic, "/tail"), asked) : null;
      if (why && !source) problem.replaceChildren(failed(why));
    });
  }

  function take(found) {
    for (const [each, offset] of Object.entries(found || {})) positions.set(each, String(offset));
  }

  if (tooMany) return h("div", null, h("div", { class: "query" }, choice), notice(`The topic has ${number(about.partitions.length)} partitions, and at most ${TOGETHER_MAX} are followed together: choose one.`));
  document.addEventListener("visibilitychange", () => following && (document.hidden ? stop("in the background") : start()), { signal });
  const ticking = setInterval(tell, 1_000);
  signal.addEventListener("abort", () => {
    clearInterval(ticking);
    clearTimeout(again);
    source?.close();
  });
  start();
  return h(
    "div",
    null,
    h("div", { class: "query" }, choice, pause, clear, h("span", { class: "live" }, light, state), counts),
    problem,
    h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "New records" }, h("table", { class: "records" }, h("caption", { class: "unseen" }, "New records, the newest first"), h("thead", null, h("tr", null, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))), list)),
    h("p", { class: "muted" }, `Records that are committed from now on, the newest first. The page keeps the last ${ROWS_MAX}.`),
  );
}
