// Without a credential, with a wrong one, and with one that is not enough.

import { setTimeout as pause } from "node:timers/promises";
import { refused, refusedByBinding } from "../lib/refused.mjs";
import { request } from "../lib/wire.mjs";

const WRITES = [
  "INSERT INTO t (v) VALUES ('four')",
  "DELETE FROM t",
  "UPDATE t SET v = 'x' WHERE id = 1 RETURNING v",
  "WITH one AS (SELECT 1 AS id) DELETE FROM t WHERE id IN (SELECT id FROM one)",
  "SELECT 1; DELETE FROM t; SELECT 2",
  "CREATE TABLE more (a)",
  "DROP TABLE t",
  "ALTER TABLE t ADD COLUMN more",
  "REPLACE INTO t VALUES (1, 'x')",
];

/**
 * The code of a credential that is not known. wrangler takes 10000 as a reason to run `whoami`, and what `whoami` asks for
 * has codes of its own: 1000 and 9109.
 */
function code(path) {
  if (/\/tokens\/verify(\?|$)/.test(path)) return 1000;
  return /^\/client\/v4\/(user|memberships|accounts|accounts\/[0-9a-f]{32})(\?|$)/.test(path) ? 9109 : 10000;
}

export default function credentials({ target, root, db, shop, other, owner, send, token, secrets }) {
  const insert = JSON.stringify({ sql: WRITES[0] });
  const binding = { "x-binding-kind": "d1", "x-binding-id": shop.uuid };
  /** Every route that asks for something, as a request that would do something. */
  const routes = [
    ["GET", "/client/v4/user"],
    ["GET", "/client/v4/user/tokens"],
    ["GET", "/client/v4/user/tokens/verify"],
    ["GET", "/client/v4/memberships"],
    ["GET", "/client/v4/accounts"],
    ["GET", root],
    ["GET", `${root}/tokens`],
    ["POST", `${root}/tokens`, JSON.stringify({ name: "mine", scopes: ["d1:*:write"] })],
    ["GET", `${root}/tokens/verify`],
    ["DELETE", `${root}/tokens/${"0".repeat(32)}`],
    ["POST", "/client/v4/graphql", JSON.stringify({ query: "{viewer{accounts{x}}}", operationName: "getD1MetricsOverviewQuery", variables: {} })],
    ["GET", `${root}/d1/database`],
    ["POST", `${root}/d1/database`, JSON.stringify({ name: "mine" })],
    ["GET", db],
    ["GET", `${root}/d1/database/shop`],
    ["PATCH", db, JSON.stringify({ read_replication: { mode: "auto" } })],
    ["PUT", db, JSON.stringify({ read_replication: { mode: "auto" } })],
    ["DELETE", db],
    ["POST", `${db}/query`, insert],
    ["POST", `${db}/raw`, insert],
    ["POST", `${db}/import`, JSON.stringify({ action: "init", etag: "0".repeat(32) })],
    ["POST", `${db}/export`, JSON.stringify({ output_format: "polling" })],
    ["GET", `${db}/time_travel/bookmark`],
    ["POST", `${db}/time_travel/restore?timestamp=2026-01-01T00:00:00Z`],
  ];

  const wrong = {
    "another key": { authorization: "Bearer not-the-key" },
    "one character more": { authorization: `Bearer ${target.key}x` },
    "one character less": { authorization: `Bearer ${target.key.slice(0, -1)}` },
    "no key": { authorization: "Bearer " },
    "no scheme": { authorization: target.key },
    "another scheme": { authorization: `Basic ${Buffer.from(`owner:${target.key}`).toString("base64")}` },
    "X-Auth-Key": { "x-auth-key": "not-the-key", "x-auth-email": "owner@example.com" },
    "x-terminal-key": { "x-terminal-key": "not-the-key" },
    "a cookie": { cookie: `token=${target.key}; authorization=${target.key}` },
    "a wrong key before the right one": { authorization: ["Bearer not-the-key", `Bearer ${target.key}`] },
    "a wrong key beside the right one": { authorization: "Bearer not-the-key", "x-auth-key": target.key },
    "bytes that are no UTF-8": { authorization: "Bearer \xff\xfe" },
    "a key of 60,000 bytes": { authorization: `Bearer ${"k".repeat(60_000)}` },
    "the shape of a token": { authorization: `Bearer hth_${"A".repeat(40)}` },
  };
  secrets.add(Buffer.from(`owner:${target.key}`).toString("base64"));

  const cases = [
    {
      name: "no credential, on every route",
      async body() {
        for (const [method, path, body] of routes) refused(await send(request(method, path, {}, body)), 401, code(path));
      },
    },
    {
      name: "no credential, on the bindings",
      async body() {
        for (const path of ["/query?resultsFormat=NONE", "/execute", "/dump"]) {
          refusedByBinding(await send(request("POST", path, binding, insert)), 401);
        }
        const miniflare = { "mf-url": "http://d1/query", "mf-binding": "DB", "mf-header-authorization": `Bearer ${target.key}` };
        refusedByBinding(await send(request("POST", `/bindings/d1/${shop.uuid}`, miniflare, insert)), 401);
        refusedByBinding(await send(request("POST", `/bindings/d1/${shop.uuid}?token=not-the-key`, { "mf-url": "http://d1/query" }, insert)), 401);
      },
    },
    {
      name: "a key in the address is none",
      async body() {
        for (const [method, path, body] of routes) {
          refused(await send(request(method, `${path}${path.includes("?") ? "&" : "?"}token=${target.key}&api_key=${target.key}`, {}, body)), 401, code(path));
        }
      },
    },
  ];
  for (const [what, headers] of Object.entries(wrong)) {
    cases.push({
      name: `a wrong credential: ${what}`,
      async body() {
        refused(await send(request("DELETE", db, headers)), 401, 10000);
        refused(await send(request("POST", `${db}/query`, headers, insert)), 401, 10000);
        for (const path of ["/client/v4/accounts", "/client/v4/user/tokens/verify"]) refused(await send(request("GET", path, headers)), 401, code(path));
        const error = refusedByBinding(await send(request("POST", "/query", { ...binding, ...headers }, insert)), 401);
        if (error.includes(target.key)) throw new Error("the answer holds the key");
      },
    });
  }

  return cases.concat([
    {
      name: "a token that may only read",
      body: () =>
        token(["d1:*:read"], async (reader) => {
          for (const sql of WRITES) {
            refused(await send(request("POST", `${db}/query`, reader, JSON.stringify({ sql }))), 403, 9109);
            refusedByBinding(await send(request("POST", "/query", { ...binding, ...reader }, JSON.stringify([{ sql: "SELECT 1" }, { sql }]))), 403);
          }
          for (const [method, path, body] of routes.filter(([method, path]) => method !== "GET" && /\/(tokens|d1)\b/.test(path) && !/query|raw|export/.test(path))) {
            refused(await send(request(method, path, reader, body)), 403, 9109);
          }
        }),
    },
    {
      name: "a token for another database",
      body: () =>
        token([`d1:${other.name}:write`], async (stranger) => {
          for (const path of [db, `${root}/d1/database/shop`]) {
            refused(await send(request("GET", path, stranger)), 403, 9109);
            refused(await send(request("DELETE", path, stranger)), 403, 9109);
            refused(await send(request("POST", `${path}/query`, stranger, JSON.stringify({ sql: "SELECT * FROM t" }))), 403, 9109);
            refused(await send(request("POST", `${path}/export`, stranger, JSON.stringify({ output_format: "polling" }))), 403, 9109);
          }
          const list = await send(request("GET", `${root}/d1/database`, stranger));
          const names = list.answers[0].json.result.map(({ name }) => name);
          if (names.length !== 1 || names[0] !== other.name) throw new Error(`the list shows ${names}`);
        }),
    },
    {
      name: "a token that asks for more than it has",
      body: () =>
        token(["d1:shop:write", "tokens:*:create"], async (climber) => {
          for (const scope of ["d1:*:write", "d1:other:read", "tokens:*:write", "d1:shop:create"]) {
            refused(await send(request("POST", `${root}/tokens`, climber, JSON.stringify({ name: "up", scopes: [scope] }))), 403, 9109);
          }
        }),
    },
    {
      name: "a revoked token",
      async body() {
        const kept = await token(["d1:*:write"], async (headers) => headers);
        refused(await send(request("POST", `${db}/query`, kept, insert)), 401, 10000);
        refused(await send(request("GET", "/client/v4/user/tokens/verify", kept)), 401, 1000);
      },
    },
    {
      name: "an expired token",
      async body() {
        const expires_on = new Date(Date.now() + 4_000).toISOString();
        const made = await target.call("POST", `${target.api}/accounts/${target.account}/tokens`, { name: "brief", scopes: ["d1:*:write"], expires_on });
        const { value } = made.body.result;
        secrets.add(value);
        await pause(Math.max(0, Date.parse(expires_on) - Date.now()) + 50);
        refused(await send(request("POST", `${db}/query`, { authorization: `Bearer ${value}` }, insert)), 401, 10000);
      },
    },
    {
      name: "tokens that cannot be made",
      async body() {
        for (const body of [{}, { name: "x", scopes: [] }, { name: "", scopes: ["d1:*:read"] }, { name: "x", scopes: ["d1:*:everything"] }, { name: "x", scopes: ["d1:*:read"], expires_on: "2020-01-01T00:00:00Z" }, { name: "x", scopes: "d1:*:read" }]) {
          refused(await send(request("POST", `${root}/tokens`, owner, JSON.stringify(body))), 400, 7400);
        }
        refused(await send(request("DELETE", `${root}/tokens/${"0".repeat(32)}`, owner)), 404, 7492);
      },
    },
  ]);
}
