// Which view the address asks for, and what all views share.

import { ask } from "./ask.js";
import { commits } from "./commits.js";
import { failed, h, plain, shown as shownText } from "./dom.js";
import { group, groups } from "./groups.js";
import { records } from "./records.js";
import { segments } from "./segments.js";
import { servers } from "./servers.js";
import { slots } from "./slots.js";
import { tail } from "./tail.js";
import { overview, topics } from "./topics.js";

const PARTS = { "": ["Overview", overview], records: ["Records", records], tail: ["Live tail", tail], segments: ["Segments", segments], slots: ["Slots", slots], commits: ["Commits", commits] };
const main = document.getElementById("main");
const busy = document.getElementById("busy");
let shown = null;

/** The view of an address: its title, its part of the navigation, the topic if it is of one, and what makes it. */
function viewOf(address) {
  const [part, name, of, more] = address.pathname.split("/").slice(1).map(decoded);
  if (part === "" && name === undefined) return { title: "Topics", part: "topics", make: topics };
  if (part === "groups" && name === undefined) return { title: "Groups", part: "groups", make: groups };
  if (part === "group" && name === undefined) return { title: address.searchParams.get("group") || "Group", part: "groups", make: group };
  if (part === "servers" && name === undefined) return { title: "Servers", part: "servers", make: servers };
  if (part === "topics" && name && more === undefined && Object.hasOwn(PARTS, of || "")) {
    const [title, make] = PARTS[of || ""];
    return { title: `${name} · ${title}`, part: "topics", topic: name, tab: of || "", make };
  }
  return { title: "Not found", part: "", make: async () => h("div", null, h("h1", { tabindex: -1 }, "Not found"), h("p", { class: "notice" }, "This page has no such view."), h("a", { class: "button", href: "/" }, "All topics")) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // it is not UTF-8, and so not a topic
  }
}

function tabs(view) {
  const base = `/topics/${encodeURIComponent(view.topic)}`;
  return h(
    "div",
    { class: "of-topic" },
    h("h1", { tabindex: -1 }, h("a", { href: "/", class: "crumb" }, "Topics"), h("span", { class: "slash", "aria-hidden": "true" }, "/"), h("bdi", null, shownText(view.topic))),
    h(
      "nav",
      { "aria-label": "Topic", class: "tabs" },
      Object.entries(PARTS).map(([part, [title]]) =>
        h("a", { href: part ? `${base}/${part}` : base, "aria-current": part === view.tab ? "page" : null }, title),
      ),
    ),
  );
}

/** Shows what the address asks for. A view gets its part of the page, the query, and how to leave and to change the address. */
async function show(moved) {
  const address = new URL(location.href);
  const view = viewOf(address);
  shown?.abort();
  const leaving = new AbortController();
  shown = leaving;
  document.title = `${plain(view.title)} – sparklog`;
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.dataset.part === view.part) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = h("div", { class: "view" });
  const whole = view.topic ? [tabs(view), place] : [place];
  const wait = setTimeout(() => {
    busy.hidden = false;
    if (place.isConnected && !place.hasChildNodes()) place.append(h("p", { class: "wait" }, "Loading …"));
  }, 120);
  const context = {
    topic: view.topic,
    query: address.searchParams,
    place,
    signal: leaving.signal,
    go,
    /** Puts what is shown into the address, without another entry of the history. */
    note(query) {
      if (!leaving.signal.aborted) history.replaceState(history.state, "", addressOf(location.pathname, query));
    },
    again: () => show(false),
    /** Shows what there is of the view before all of it is there. */
    begin(content) {
      clearTimeout(wait);
      busy.hidden = true;
      place.replaceChildren(content);
      if (!place.isConnected) put(whole, moved);
    },
  };
  // The first view shows where it is before it is read; a later one leaves the one before it until then.
  if (!main.hasChildNodes()) put(whole, moved);
  try {
    const made = await view.make(context);
    if (leaving.signal.aborted) return;
    if (made) place.replaceChildren(made);
  } catch (error) {
    if (leaving.signal.aborted || error.name === "AbortError") return;
    const title = view.topic ? [] : [h("h1", { tabindex: -1 }, shownText(view.title))];
    place.replaceChildren(...title, failed(error), h("button", { type: "button", onclick: () => show(false) }, "Try again"));
  } finally {
    clearTimeout(wait);
    if (shown === leaving) busy.hidden = true;
  }
  if (!place.isConnected) put(whole, moved);
}

function put(whole, moved) {
  main.replaceChildren(...whole);
  if (moved) {
    scrollTo(0, 0);
    (main.querySelector("h1") || main).focus({ preventScroll: true });
  }
}

export function addressOf(path, query) {
  const text = new URLSearchParams(Object.entries(query || {}).filter(([, value]) => value !== null && value !== undefined && value !== "")).toString();
  return path + (text && `?${text}`);
}

function go(path, query) {
  history.pushState(null, "", addressOf(path, query));
  show(true);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.origin !== location.origin || link.hasAttribute("download") || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
addEventListener("popstate", () => show(true));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, select, textarea")) return;
  if (event.key === "/") {
    const search = main.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...main.querySelectorAll("[data-row]")];
    const place = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    rows[Math.max(0, Math.min(place, rows.length - 1))]?.focus();
  }
});

ask("/api/about").then(
  ({ root, version }) => {
    document.getElementById("root").textContent = root;
    document.querySelector(".brand").title = `sparklog ${version}`;
  },
  () => {},
);
show(false);
