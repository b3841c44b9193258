// The server under test, as the environment names it, and a plain REST call on it.

import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Reads HEARTH_URL, HEARTH_KEY (or HEARTH_KEY_FILE), HEARTH_ACCOUNT and WORKDIR. */
export function target() {
  const url = process.env.HEARTH_URL?.replace(/\/+$/, "");
  if (!url) throw new Error("HEARTH_URL is not set: give the server's address, such as http://127.0.0.1:8787");
  const key =
    process.env.HEARTH_KEY ??
    (process.env.HEARTH_KEY_FILE && readFileSync(process.env.HEARTH_KEY_FILE, "utf8").trim());
  if (!key) throw new Error("HEARTH_KEY is not set: give the owner key, or its file as HEARTH_KEY_FILE");
  const account = process.env.HEARTH_ACCOUNT ?? "00000000000000000000000000000001";
  const workdir = process.env.WORKDIR ?? mkdtempSync(join(tmpdir(), "hearth-clients-"));
  mkdirSync(workdir, { recursive: true });
  return new Target(url, key, account, workdir);
}

class Target {
  constructor(url, key, account, workdir) {
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

  /** Deletes what an earlier run left, so that names are free. */
  async clear(prefix) {
    for (const { uuid } of await this.databases(prefix)) await this.result("DELETE", `/${uuid}`);
  }

  async create(name) {
    return this.result("POST", "", { name });
  }

  /** Runs SQL over REST and gives the result array. */
  async query(uuid, sql, params) {
    return this.result("POST", `/${uuid}/query`, { sql, params });
  }
}
