// Requests that must be refused, byte by byte: without a key, too large, malformed, half sent.
//
//   HEARTH_BIN=… node hostile.mjs [--only TEXT]
//
// Each is answered with its status and code, or by a close where there is nothing to answer; afterwards every database, every
// row and every token is as it was. At the end the server's log, at its most talkative, must hold none of the secrets in use.

import assert from "node:assert/strict";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Report } from "./lib/report.mjs";
import { serve } from "./lib/serve.mjs";
import { option } from "./lib/suite.mjs";
import { Target } from "./lib/target.mjs";
import { exchange } from "./lib/wire.mjs";
import { workFolder } from "./lib/workdir.mjs";
import bodies from "./cases/hostile-bodies.mjs";
import credentials from "./cases/hostile-credentials.mjs";
import framing from "./cases/hostile-framing.mjs";
import halves from "./cases/hostile-halves.mjs";
import links from "./cases/hostile-links.mjs";

const workdir = workFolder();
const server = await serve(process.env.HEARTH_BIN, join(workdir, "hostile-data"), ["--log-level", "trace"]);
const target = new Target(server.url, server.key, "00000000000000000000000000000001", workdir, server);
const report = new Report("hostile");
const only = option("only", "");

const shop = await target.create("shop");
await target.query(shop.uuid, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t (v) VALUES ('one'), ('two'), ('three')");
const other = await target.create("other");
await target.query(other.uuid, "CREATE TABLE secret (v TEXT); INSERT INTO secret VALUES ('kept')");

/** Secrets that were handed out or guessed; the log may hold none of them. */
const secrets = new Set([server.key]);
const context = {
  target,
  shop,
  other,
  secrets,
  root: `/client/v4/accounts/${target.account}`,
  db: `/client/v4/accounts/${target.account}/d1/database/${shop.uuid}`,
  owner: { authorization: `Bearer ${server.key}` },
  /** One request that is whole, and its answer. */
  send: (pieces) => exchange(server.url, pieces, { n: 1 }),
  /** Bytes after which the connection must not be used again. */
  sendAndClose: (pieces, then) => exchange(server.url, pieces, { then }),
  token,
};
const before = await contents();
let last = before;

// What has to be waited for starts first.
const cases = [halves, credentials, bodies, framing, links].flatMap((make) => make(context)).filter(({ name }) => name.includes(only));
const slow = cases.filter(({ slow }) => slow);
const waiting = slow.map(({ body }) => body().then(() => undefined, (e) => e));
for (const { name, body } of cases.filter(({ slow }) => !slow)) {
  await report.test(name, async () => {
    const error = await body().then(() => undefined, (e) => e);
    const now = await contents();
    const same = isDeepStrictEqual(now, last);
    last = now;
    if (error) throw error;
    assert.ok(same, `something has changed: ${JSON.stringify(now)}`);
  });
}
for (const [k, { name }] of slow.entries()) {
  const error = await waiting[k];
  await report.test(name, () => {
    if (error) throw error;
  });
}
await report.test("nothing has changed at the end", async () => assert.deepEqual(await contents(), before));
await report.test("the server ends well", () => target.close());
await report.test("no secret is in the log", () => {
  const log = server.log();
  assert.match(log, /\bINFO\b.*\/tokens/, "the log names the routes that were asked for");
  for (const secret of secrets) {
    const at = log.indexOf(secret);
    const found = at === -1 ? "" : log.slice(log.lastIndexOf("\n", at) + 1, log.indexOf("\n", at)).replaceAll(secret, "<the secret>");
    assert.equal(found, "", "a line of the log holds a secret");
  }
});
report.finish();

/** A token with these scopes; it is revoked again after `use`. */
async function token(scopes, use) {
  const made = await target.call("POST", `${target.api}/accounts/${target.account}/tokens`, { name: "hostile", scopes });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const { id, value } = made.body.result;
  secrets.add(value);
  try {
    return await use({ authorization: `Bearer ${value}` }, id);
  } finally {
    await target.call("DELETE", `${target.api}/accounts/${target.account}/tokens/${id}`);
  }
}

/** Everything that a refused request could have changed. */
async function contents() {
  const databases = await target.databases();
  const rows = {};
  for (const { uuid, name } of databases) {
    const [schema] = await target.query(uuid, "SELECT type, name, sql FROM sqlite_master ORDER BY name");
    rows[name] = { schema: schema.results };
    for (const { name: table } of schema.results) rows[name][table] = (await target.query(uuid, `SELECT * FROM "${table}" ORDER BY rowid`))[0].results;
  }
  const tokens = await target.call("GET", `${target.api}/user/tokens?per_page=1000`);
  const living = tokens.body.result.filter(({ status }) => status === "active").map(({ id }) => id);
  return { databases, rows, living };
}
