// Questions to the server.

export class Failure extends Error {
  constructor({ condition, text, kind }) {
    super(text);
    this.condition = condition;
    this.kind = kind;
  }
}

const UNREACHABLE = {
  condition: "The server does not answer",
  text: "The process that serves this page has stopped, or cannot be reached. Start it again: sparklog ui ROOT",
};

async function response(path, query, signal) {
  const given = Object.entries(query || {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  let found;
  try {
    found = await fetch(path + (text && `?${text}`), { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(UNREACHABLE);
  }
  if (!found.ok) {
    let content = null;
    try {
      content = await found.json();
    } catch {
      // It is not JSON, which is said below.
    }
    throw new Failure(content?.error || { condition: `Status ${found.status}`, text: "The answer is not one of this page's server." });
  }
  return found;
}

/** The answer to a question, as an object. */
export async function ask(path, query, signal) {
  return (await response(path, query, signal)).json();
}

/** Why the server does not answer a question; null if it does, and then the answer is not read. */
export async function refusal(path, query) {
  const asking = new AbortController();
  try {
    await response(path, query, asking.signal);
    return null;
  } catch (error) {
    return error;
  } finally {
    asking.abort();
  }
}

/** The lines of an answer, as soon as they are there: calls `take` with lists of objects. */
export async function askLines(path, signal, take) {
  const reader = (await response(path, null, signal)).body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += done ? "" : decoder.decode(value, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop();
    if (lines.length) take(lines.map((line) => JSON.parse(line)));
    if (done) return;
  }
}

export function topicPath(topic, part = "") {
  return `/api/topics/${encodeURIComponent(topic)}${part}`;
}
