// A Hearth server of our own, on a port that the OS chose.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { end, start } from "./children.mjs";

const START_MS_MAX = 60_000;
const LOG_CHARS_MAX = 64 * 1024 * 1024;

/**
 * Starts `bin` on the folder `data` and waits until it listens.
 *
 * Gives `{url, key, pid, log, stop, kill}`: `log()` is all that it has printed on stderr, `stop` ends it with
 * SIGTERM and gives its exit code, `kill` ends it with SIGKILL.
 */
export async function serve(bin, data, args = []) {
  if (!bin) throw new Error("HEARTH_BIN is not set: give the server's program");
  mkdirSync(data, { recursive: true });
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("HEARTH_")));
  const child = start(bin, ["serve", "--data", data, "--listen", "127.0.0.1:0", ...args], { env, stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (chunk) => (text = (text + chunk).slice(-LOG_CHARS_MAX)));
  const url = await listening(child, () => text);
  return {
    url,
    pid: child.pid,
    key: readFileSync(join(data, "owner.key"), "utf8").trim(),
    log: () => text,
    stop: () => end(child),
    kill: () => end(child, "SIGKILL"),
  };
}

async function listening(child, log) {
  try {
    return await new Promise((done, broken) => {
      const timer = setTimeout(() => broken(new Error(`no address after ${START_MS_MAX} ms:\n${log()}`)), START_MS_MAX);
      const settle = (how, what) => {
        clearTimeout(timer);
        how(what);
      };
      child.stderr.on("data", () => {
        const found = log().match(/listening on (http:\/\/[^\s"]+)\s/);
        if (found) settle(done, found[1].replace(/\/+$/, ""));
      });
      child.once("error", (e) => settle(broken, e));
      child.once("close", (code) => settle(broken, new Error(`the server ended with ${code}:\n${log()}`)));
    });
  } catch (e) {
    await end(child, "SIGKILL");
    throw e;
  }
}
