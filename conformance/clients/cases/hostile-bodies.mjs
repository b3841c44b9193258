// Bodies that are too large, no JSON, of another shape, or past a limit of the database.

import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { refused, refusedByBinding } from "../lib/refused.mjs";
import { request } from "../lib/wire.mjs";

const MIB = 1024 * 1024;
const QUERY_BYTES_MAX = 64 * MIB;
const JSON_BYTES_MAX = MIB;
const HARM = "DELETE FROM t";

/** No JSON, or JSON of another shape. */
const MALFORMED = [
  "",
  " \r\n",
  "{",
  "nonsense",
  "[]",
  "null",
  '"DELETE FROM t"',
  "{}",
  '{"sql":5}',
  '{"sql":null}',
  '{"sql":["DELETE FROM t"]}',
  '{"batch":{}}',
  '{"batch":[{"sql":"DELETE FROM t"},7]}',
  '{"batch":[{"sql":"DELETE FROM t"},{"sql":5}]}',
  '{"batch":[{"sql":"DELETE FROM t"},{}]}',
  '{"sql":"DELETE FROM t","batch":[{"sql":"DELETE FROM t"}]}',
  '{"batch":[{"sql":"DELETE FROM t"}],"params":[]}',
  '{"sql":"DELETE FROM t","sql":"SELECT 1"}',
  '{"sql":"DELETE FROM t"} trailing',
  '{"sql":"DELETE FROM t"}{"sql":"DELETE FROM t"}',
  '{"sql":"DELETE FROM t",}',
  '{"sql":"DELETE FROM t","params":{"a":1}}',
  '{"sql":"DELETE FROM t","params":"a"}',
  '{"sql":"DELETE FROM t","params":[NaN]}',
  '{"sql":"DELETE FROM t","params":[1e999]}',
  '{"sql":"DELETE FROM t \\ud800"}',
  '{"sql":"DELETE FROM t \\x"}',
  `{"sql":${'{"a":'.repeat(100_000)}1${"}".repeat(100_001)}`,
];

/** JSON of the right shape that the database refuses. */
const REFUSED_BY_D1 = {
  "no statement": { sql: "" },
  "a comment only": { sql: "-- DELETE FROM t" },
  "no statement in the batch": { batch: [] },
  "a NUL in the text": { sql: `${HARM}\0` },
  "a parameter that is an object": { sql: `${HARM} WHERE id = ?1`, params: [{}] },
  "a parameter that is no blob": { sql: `${HARM} WHERE id = ?1`, params: [[256]] },
  "arrays in arrays": `{"sql":"DELETE FROM t","params":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
  "too many parameters": { sql: `${HARM} WHERE id = ?1`, params: [1, 2] },
  "too few parameters": { sql: `${HARM} WHERE id IN (?1, ?2)`, params: [1] },
  "101 parameters": { sql: `${HARM} WHERE id IN (${Array(101).fill("?").join(",")})`, params: Array(101).fill(1) },
  "a statement over 100,000 bytes": { sql: `${HARM}; SELECT 1 /*${"x".repeat(100_000)}*/` },
  "1,001 statements": { batch: Array(1_001).fill({ sql: HARM }) },
  "a value over 2,000,000 bytes": { batch: [{ sql: HARM }, { sql: "INSERT INTO t (v) VALUES (?1)", params: ["x".repeat(2_000_001)] }] },
  "a transaction of its own": { sql: `BEGIN; ${HARM}; COMMIT` },
  "another file": { sql: "ATTACH DATABASE '/etc/passwd' AS p" },
  "a file to write": { sql: "VACUUM INTO '/tmp/hearth-hostile.db'" },
  "an extension": { sql: "SELECT load_extension('x')" },
  "the schema itself": { sql: "PRAGMA writable_schema = ON; DELETE FROM sqlite_master" },
  "a failure after the harm": { sql: `${HARM}; SELECT * FROM nope` },
  "a failure after the harm, in a batch": { batch: [{ sql: HARM }, { sql: "DROP TABLE t" }, { sql: "SELEC" }] },
};

export default function bodies({ root, db, shop, owner, send }) {
  const query = `${db}/query`;
  const post = (path, body, headers = {}) => send(request("POST", path, { ...owner, ...headers }, body));
  const binding = { "x-binding-kind": "d1", "x-binding-id": shop.uuid };

  const cases = [
    {
      name: "a body that is no such JSON",
      async body() {
        for (const body of MALFORMED) for (const path of [query, `${db}/raw`]) refused(await post(path, body), 400, 7400);
        for (const body of MALFORMED.filter((text) => !text.includes('"batch"') && text !== "[]")) {
          refusedByBinding(await send(request("POST", "/query", { ...owner, ...binding }, body)), 400);
        }
      },
    },
    {
      name: "a body that is not UTF-8",
      async body() {
        refused(await post(query, Buffer.from('{"sql":"DELETE FROM t -- \xff"}', "latin1")), 400, 7400);
        refused(await post(query, Buffer.from('{"sql":"DELETE FROM t -- \xc0\x80"}', "latin1")), 400, 7400);
        refused(await post(query, Buffer.from(`\ufeff{"sql":"${HARM}"}`, "utf16le")), 400, 7400);
      },
    },
    {
      name: "a compressed body",
      body: async () => refused(await post(query, gzipSync(`{"sql":"${HARM}"}`), { "content-encoding": "gzip" }), 400, 7400),
    },
    {
      name: "a database that cannot be made",
      async body() {
        const names = ["", "x".repeat(65), "a b", "a/b", "../up", "-x", "\u00e9", "a\u0000b", 5, null, ["a"], { a: 1 }];
        for (const name of names) refused(await post(`${root}/d1/database`, JSON.stringify({ name })), 400, 7400);
        refused(await post(`${root}/d1/database`, "{}"), 400, 7400);
        refused(await post(`${root}/d1/database`, JSON.stringify({ name: "mine", primary_location_hint: "mars" })), 400, 7400);
        refused(await post(`${root}/d1/database`, JSON.stringify({ name: "mine", jurisdiction: "mars" })), 400, 7400);
        refused(await post(`${root}/d1/database`, JSON.stringify({ name: "shop" })), 409, 7502);
      },
    },
    {
      name: "imports and exports of another shape",
      async body() {
        for (const body of ["{}", "[]", '{"action":"sideways"}', '{"action":"init"}', '{"action":"init","etag":"x"}', `{"action":"init","etag":"${"G".repeat(32)}"}`, '{"action":"poll"}', '{"action":"ingest","etag":5}']) {
          refused(await post(`${db}/import`, body), 400, 7400);
        }
        for (const body of ["[]", '{"dump_options":5}', '{"dump_options":{"tables":"t"}}', '{"current_bookmark":5}']) {
          refused(await post(`${db}/export`, body), 400, 7400);
        }
      },
    },
    {
      name: "bindings that say something else",
      async body() {
        const harm = JSON.stringify({ sql: HARM });
        const bind = async (headers, path, status, body = harm) => refusedByBinding(await send(request("POST", path, { ...owner, ...headers }, body)), status);
        await bind({ "x-binding-kind": "nothing", "x-binding-id": shop.uuid }, "/query", 400);
        await bind({ "x-binding-kind": "d1" }, "/query", 400);
        await bind({ "x-binding-kind": "d1", "x-binding-id": "" }, "/query", 400);
        await bind({ "x-binding-kind": "d1", "x-binding-id": "nobody" }, "/query", 404);
        await bind({ "x-binding-kind": "d1", "x-binding-id": "../shop" }, "/query", 404);
        await bind(binding, "/elsewhere", 404);
        await bind(binding, "/query?resultsFormat=CSV", 400);
        await bind(binding, "/query", 400, JSON.stringify([{ sql: HARM }, { sql: "SELECT * FROM nope" }]));
        refusedByBinding(await send(request("GET", "/query", { ...owner, ...binding })), 405);
        refusedByBinding(await send(request("POST", "/bindings/d1", { ...owner, "mf-url": "http://d1/query" }, harm)), 400);
        refusedByBinding(await send(request("POST", `/bindings/d1/${shop.uuid}`, owner, harm)), 400);
      },
    },
    {
      name: "a declared length over the limit is refused before it is sent",
      async body() {
        refused(await send(request("POST", query, { ...owner, "content-length": QUERY_BYTES_MAX + 1, expect: "100-continue" })), 413, 7490);
        refused(await send(request("POST", `${root}/d1/database`, { ...owner, "content-length": JSON_BYTES_MAX + 1, expect: "100-continue" })), 413, 7490);
        const unasked = await send(request("POST", query, { "content-length": QUERY_BYTES_MAX + 1, expect: "100-continue" }));
        refused(unasked, 401, 10000);
        assert.doesNotMatch(unasked.text, /100 Continue/, "nobody without a key is asked to go on");
      },
    },
    {
      name: "a body over the limit of its route",
      async body() {
        const padded = (text, bytes) => Buffer.concat([Buffer.from(text), Buffer.alloc(bytes - text.length, " ")]);
        for (const path of [`${root}/d1/database`, `${db}/import`, `${db}/export`, `${root}/tokens`, "/client/v4/graphql"]) {
          refused(await post(path, padded('{"name":"mine","action":"init","etag":"x","query":"x","scopes":[]}', JSON_BYTES_MAX + 1)), 413, 7490);
        }
        refused(await post(query, padded(`{"sql":"${HARM}"}`, QUERY_BYTES_MAX + 1)), 413, 7490);
      },
    },
    {
      name: "a chunked body that grows over the limit",
      async body() {
        const begin = `{"sql":"${HARM}","x":"`;
        const head = request("POST", query, { ...owner, "transfer-encoding": "chunked" }, `${begin.length.toString(16)}\r\n${begin}\r\n`);
        const chunk = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(MIB, "x"), Buffer.from("\r\n")]);
        refused(await send([head, ...Array(QUERY_BYTES_MAX / MIB + 1).fill(chunk), '2\r\n"}\r\n0\r\n\r\n']), 413, 7490);
      },
    },
    {
      name: "databases that are not there",
      async body() {
        for (const id of ["nobody", "00000000-0000-4000-8000-000000000000", "..", "a%2Fb", "shop%00", "%2e%2e%2fsystem", "system", `${shop.uuid}x`, "x".repeat(5000)]) {
          for (const [method, tail, body] of [["GET", ""], ["DELETE", ""], ["POST", "/query", JSON.stringify({ sql: HARM })], ["POST", "/export", '{"output_format":"polling"}']]) {
            refused(await send(request(method, `${root}/d1/database/${id}${tail}`, owner, body)), 404, 7404);
          }
        }
      },
    },
  ];
  for (const [what, body] of Object.entries(REFUSED_BY_D1)) {
    cases.push({ name: `refused by the database: ${what}`, body: async () => refused(await post(query, typeof body === "string" ? body : JSON.stringify(body)), 400, 7500) });
  }
  return cases;
}
