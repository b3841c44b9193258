// The child processes of this one: each leads a group of its own, and none outlives this process.

import { spawn } from "node:child_process";

const END_MS_MAX = 20_000;
const live = new Set();

/** As `spawn`. The child's own children belong to its group. */
export function start(program, args, options) {
  const child = spawn(program, args, { ...options, detached: true });
  live.add(child);
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
export async function end(child, name = "SIGTERM") {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((done) => child.once("exit", done));
    signal(child, name);
    const timer = setTimeout(() => signal(child, "SIGKILL"), END_MS_MAX);
    await ended;
    clearTimeout(timer);
  }
  return child.exitCode ?? child.signalCode;
}

for (const [name, number] of [["SIGHUP", 1], ["SIGINT", 2], ["SIGTERM", 15]]) {
  process.once(name, async () => {
    await Promise.all([...live].map((child) => end(child)));
    process.exit(128 + number);
  });
}
process.on("exit", () => {
  for (const child of live) signal(child, "SIGKILL");
});
