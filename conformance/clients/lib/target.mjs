// The server under test, and a plain REST call on it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { serve } from "./serve.mjs";
import { workFolder } from "./workdir.mjs";

const ACCOUNT = "00000000000000000000000000000001";

/**
 * The server that HEARTH_URL, HEARTH_KEY (or HEARTH_KEY_FILE) and HEARTH_ACCOUNT name.
 *
 * Without HEARTH_URL one is started from HEARTH_BIN, on a fresh folder; it ends with this process.
 */
export async function target() {
  const workdir = workFolder();
  if (!process.env.HEARTH_URL) {
    if (!process.env.HEARTH_BIN) throw new Error("neither HEARTH_URL nor HEARTH_BIN is set: name a server, or the program to start one");
    const server = await serve(process.env.HEARTH_BIN, join(workdir, "data"));
    return new Target(server.url, server.key, ACCOUNT, workdir, server);
  }
  const url = process.env.HEARTH_URL.replace(/\/+$/, "");
  const file = process.env.HEARTH_KEY_FILE;
  const key = process.env.HEARTH_KEY ?? (file && readFileSync(file, "utf8").trim());
  if (!key) throw new Error("HEARTH_KEY is not set: give the owner key, or its file as HEARTH_KEY_FILE");
  return new Target(url, key, process.env.HEARTH_ACCOUNT ?? ACCOUNT, workdir);
}

export class Target {
  /** `server`: ours, to be stopped by `close`; leave it out for one that somebody else runs. */
  constructor(url, key, account, workdir, server) {
    this.server = server;
    this.url = url;
    this.key = key;
    this.account = account;
    this.workdir = workdir;
    this.api = `${url}/client/v4`;
    this.d1 = `${this.api}/accounts/${account}/d1/database`;
  }

  /** One REST call with the owner's key: `{status, headers, body}`, the body parsed if it is JSON. */
  async call(method, path, body, headers = {}) {
    const reply = await fetch(path.startsWith("http") ? path : this.d1 + path, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await reply.text();
    let parsed = text;
    try {
      parsed = JSON.parse(text);
    } catch {
      // Not JSON: the caller sees the text.
    }
    return { status: reply.status, headers: reply.headers, body: parsed };
  }

  async result(method, path, body) {
    const reply = await this.call(method, path, body);
    if (!reply.body?.success) {
      throw new Error(`${method} ${path} answered ${reply.status}: ${JSON.stringify(reply.body).slice(0, 600)}`);
    }
    return reply.body.result;
  }

  /** Every database whose name begins with `prefix`, over all pages. */
  async databases(prefix = "") {
    const found = [];
    for (let page = 1; page < 1000; page++) {
      const rows = await this.result("GET", `?per_page=50&page=${page}`);
      if (rows.length === 0) break;
      found.push(...rows.filter((row) => row.name.startsWith(prefix)));
    }
    return found;
  }

  /** Deletes every database whose name begins with `prefix`. */
  async clear(prefix) {
    for (const { uuid } of await this.databases(prefix)) await this.result("DELETE", `/${uuid}`);
  }

  /** Deletes the database of exactly this name, if there is one. */
  async remove(name) {
    const found = await this.call("GET", `/${encodeURIComponent(name)}`);
    if (found.status !== 404) await this.result("DELETE", `/${found.body.result.uuid}`);
  }

  /** Stops a server of our own. One that does not end well is a failure. */
  async close() {
    const code = await this.server?.stop();
    if (this.server && code !== 0) throw new Error(`the server ended with ${code}:\n${this.server.log().slice(-4000)}`);
  }

  async create(name) {
    return this.result("POST", "", { name });
  }

  /** Runs SQL over REST and gives the result array. */
  async query(uuid, sql, params) {
    return this.result("POST", `/${uuid}/query`, { sql, params });
  }
}
