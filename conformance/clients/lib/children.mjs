// The child processes of this one: each leads a group of its own, and none outlives this process.

import { spawn } from "node:child_process";

/** How long a child may take to end, when asked to, before it is ended by force. */
const END_MS_MAX = 30_000;
/** The same when this process is itself asked to end. */
const HURRIED_MS_MAX = 2_000;
const live = new Map();

/**
 * As `spawn`. The child's own children belong to its group. `hurried_ms`: how long it may take to end when this process
 * ends; more for one that has such children as this one's to end.
 */
export function start(program, args, { hurried_ms = HURRIED_MS_MAX, ...options }) {
  const child = spawn(program, args, { ...options, detached: true });
  live.set(child, hurried_ms);
  child.once("exit", () => live.delete(child));
  child.once("error", () => live.delete(child));
  return child;
}

/** Sends a signal to a child's whole group; one that has gone is no error. */
export function signal(child, name) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch (e) {
    if (e.code !== "ESRCH") throw e;
  }
}

/** Ends a child with SIGTERM, and by force after a while. Gives its exit code, or the signal that ended it. */
export async function end(child, name = "SIGTERM", ms_max = END_MS_MAX) {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((done) => child.once("exit", done));
    signal(child, name);
    const timer = setTimeout(() => signal(child, "SIGKILL"), ms_max);
    await ended;
    clearTimeout(timer);
  }
  return child.exitCode ?? child.signalCode;
}

for (const [name, number] of [["SIGHUP", 1], ["SIGINT", 2], ["SIGTERM", 15]]) {
  process.once(name, async () => {
    await Promise.all([...live].map(([child, ms]) => end(child, "SIGTERM", ms)));
    process.exit(128 + number);
  });
}
process.on("exit", () => {
  for (const child of live.keys()) signal(child, "SIGKILL");
});
