// Servers: who serves the root to Kafka's clients, and which clients are connected.

import { ask } from "./ask.js";
import { h, notice, number, passed, plural, shown, table } from "./dom.js";

const STATES = { true: ["live", "alive"], false: ["paused", "silent"] };

function at({ host, port }) {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function state(each) {
  const [light, text] = STATES[each.alive];
  return h("span", { class: "state", title: "alive: the server has renewed its heartbeat in time; silent: it has ended without a word, or sleeps" }, h("span", { class: "light", "data-state": light, "aria-hidden": "true" }), text);
}

function server(listeners, name) {
  const found = listeners.find((each) => each.name === name);
  return found ? at(found) : "–";
}

function listener(each) {
  return h("div", { title: each.kind }, h("bdi", null, shown(at(each))), " ", h("span", { class: "muted" }, shown(each.name)));
}

export async function servers({ signal }) {
  const head = h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Servers"));
  const found = await ask("/api/servers", {}, signal);
  const alive = found.servers.filter((each) => each.alive);
  const unread = found.unreadable ? notice(`${plural(found.unreadable, "file")} in _servers/ cannot be read as a heartbeat of a server.`) : null;
  if (!found.servers.length) {
    return h("div", null, head, unread || notice("No server serves this root to Kafka's clients. Start one: ", h("code", null, "sparklog serve ROOT")));
  }
  const connections = alive.reduce((sum, each) => sum + each.connections, 0);
  head.append(h("p", { class: "sums" }, `${plural(alive.length, "server")} alive, ${plural(connections, "connection")}`));
  const rows = found.servers.map((each) => [
    each.listeners.map(listener),
    state(each),
    each.since === null ? "–" : passed(each.since),
    passed(each.written),
    number(each.connections),
    shown(each.program || "–"),
    String(each.node),
  ]);
  const clients = alive.flatMap((each) =>
    each.clients.map((client) => [
      h("span", { class: "clip", title: client.name }, shown(client.name || "–")),
      h("span", { class: "clip", title: client.software }, shown(client.software.trim() || "–")),
      shown(client.host),
      shown(server(each.listeners, client.listener)),
      number(client.connections),
    ]),
  );
  const others = alive.reduce((sum, each) => sum + each.others, 0);
  return h(
    "div",
    null,
    head,
    table("Servers", [["Listeners", ""], ["State", ""], ["Began", "t", "by the clock of the server"], ["Newest heartbeat", "t"], ["Connections", "n"], ["Program", "wide"], ["Node", "n wide", "the number by which clients know the server"]], rows),
    found.more ? notice(`${plural(found.more, "server")} more, whose heartbeats are older`) : null,
    unread,
    h(
      "section",
      null,
      h("h2", null, "Clients"),
      clients.length ? table("Clients", [["Client", ""], ["Software", "wide"], ["Host", ""], ["Server", "wide"], ["Connections", "n"]], clients) : notice("No client was connected when the servers made their newest heartbeats."),
      others ? notice(`${plural(others, "connection")} more, of clients that the heartbeats have no room for`) : null,
    ),
  );
}
