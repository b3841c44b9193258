// Starts a Hearth server on a fresh folder, on a port that the OS chose.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const START_MS_MAX = 30_000;

/** `bin`: the server's program. Gives `{url, key, pid, stop}` once it listens. */
export async function serve(bin, data) {
  if (!bin) throw new Error("neither HEARTH_URL nor HEARTH_BIN is set");
  mkdirSync(data, { recursive: true });
  const child = spawn(bin, ["serve", "--data", data, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
  const url = await new Promise((done, broken) => {
    let text = "";
    const timer = setTimeout(() => broken(new Error(`no address after ${START_MS_MAX} ms:\n${text}`)), START_MS_MAX);
    child.stderr.on("data", (chunk) => {
      text = (text + chunk).slice(-20_000);
      const found = text.match(/listening on (http:\/\/[^\s"]+)/);
      if (found) {
        clearTimeout(timer);
        done(found[1].replace(/\/+$/, ""));
      }
    });
    child.on("error", broken);
    child.on("exit", (code) => broken(new Error(`the server ended with ${code}:\n${text}`)));
  }).catch((e) => {
    child.kill("SIGKILL");
    throw e;
  });
  return {
    url,
    pid: child.pid,
    key: readFileSync(join(data, "owner.key"), "utf8").trim(),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((done) => child.once("close", done));
      child.kill("SIGTERM");
      await ended;
    },
  };
}
