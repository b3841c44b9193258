// Stock workerd with a Worker in it, on a port that the OS chose.

import { createServer } from "node:net";
import { copyFileSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { end, start as spawn } from "./children.mjs";
import { HERE, workerd } from "./paths.mjs";

const START_MS_MAX = 30_000;

/**
 * The capnp text: one `external` for each binding, with the headers that say which database it is.
 *
 * `bindings`: `{DB: {address, style, uuid, key}}`. The key stands in the text: the file must be private.
 */
export function config(bindings) {
  const text = (value) => JSON.stringify(value);
  const externals = Object.entries(bindings).map(
    ([name, { address, style, uuid, key }]) => `    (name = ${text(`${name}-backend`)}, external = (address = ${text(address)}, http = (style = ${style}, injectRequestHeaders = [
      (name = "x-binding-kind", value = "d1"),
      (name = "x-binding-id", value = ${text(uuid)}),
      (name = "authorization", value = ${text(`Bearer ${key}`)}),
    ]))),`,
  );
  const wrapped = Object.keys(bindings).map(
    (name) => `    (name = ${text(name)}, wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = ${text(`${name}-backend`)})])),`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
${externals.join("\n")}
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);

const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-04-01",
  bindings = [
${wrapped.join("\n")}
  ],
);
`;
}

/** Starts workerd on `bindings`; gives `{url, get, stop}` once it listens. */
export async function start(target, bindings) {
  const dir = mkdtempSync(join(target.workdir, "workerd-"));
  copyFileSync(join(HERE, "worker/worker.js"), join(dir, "worker.js"));
  const file = join(dir, "config.capnp");
  writeFileSync(file, config(bindings), { mode: 0o600 });

  const child = spawn(workerd(), ["serve", "--control-fd=3", file], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  let timer;
  const port = await new Promise((done, broken) => {
    timer = setTimeout(() => broken(new Error(`workerd does not listen after ${START_MS_MAX} ms`)), START_MS_MAX);
    let text = "";
    child.stdio[3].on("data", (chunk) => {
      text += chunk;
      for (const line of text.split("\n")) {
        const told = parsed(line);
        if (told?.event === "listen" && told.socket === "http") done(told.port);
      }
    });
    child.on("error", broken);
    child.on("exit", (code) => broken(new Error(`workerd ended with ${code} before it listened`)));
  }).catch(async (e) => {
    clearTimeout(timer);
    await end(child, "SIGKILL");
    throw e;
  });
  clearTimeout(timer);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    pid: child.pid,
    file,
    /** Runs a scenario on a binding: `{value}` or `{error: {name, message, cause}}`. */
    async get(scenario, db = "DB") {
      const reply = await fetch(`${url}/${scenario}?db=${db}`);
      if (!reply.ok) throw new Error(`${scenario} answered ${reply.status}: ${await reply.text()}`);
      return reply.json();
    },
    /** Ends workerd, by its own pid, and waits for it. */
    stop: () => end(child),
  };
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** A port of this machine on which nobody listens. */
export async function closedPort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}
