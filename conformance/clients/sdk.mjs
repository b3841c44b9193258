// The npm SDK `cloudflare` on every D1 method: what it gives, and what it throws.
//
//   HEARTH_URL=… HEARTH_KEY=… node sdk.mjs

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import Cloudflare from "cloudflare";
import { PREFIX, freshDatabase } from "./lib/names.mjs";
import { Report, finish } from "./lib/report.mjs";
import { target } from "./lib/target.mjs";

const server = await target();
const account_id = server.account;
const NOBODY = "00000000-0000-4000-8000-000000000000";
const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;

/** Every request that the SDK sent, retries included. */
const sent = [];
const client = new Cloudflare({
  baseURL: server.api,
  apiToken: server.key,
  fetch: async (url, init) => {
    const reply = await fetch(url, init);
    sent.push({ method: init?.method ?? "GET", url: String(url), status: reply.status });
    return reply;
  },
});
const d1 = client.d1.database;

/** Runs `call`, which must throw `Class` with this code, after exactly one request. Gives the error. */
async function throws(call, { Class, status, code, message }) {
  sent.length = 0;
  let thrown;
  try {
    await call();
  } catch (e) {
    thrown = e;
  }
  assert.ok(thrown, "the call did not fail");
  assert.ok(thrown instanceof Class, `threw ${thrown?.constructor?.name}, expected ${Class.name}: ${thrown}`);
  if (status !== undefined) assert.equal(thrown.status, status);
  assert.ok(Array.isArray(thrown.errors) && thrown.errors.length > 0, `errors: ${JSON.stringify(thrown.errors)}`);
  const [error] = thrown.errors;
  if (code !== undefined) assert.equal(error.code, code);
  else assert.ok(Number.isInteger(error.code), `code ${error.code}`);
  if (message instanceof RegExp) assert.match(error.message, message);
  else if (message !== undefined) assert.equal(error.message, message);
  assert.equal(sent.length, 1, `sent ${sent.length} times: ${JSON.stringify(sent)}`);
  return thrown;
}

const report = new Report("sdk");
await server.clear(PREFIX);

await report.test("create, get and delete", async () => {
  const made = await d1.create({ account_id, name: `${PREFIX}sdk`, primary_location_hint: "weur" });
  assert.equal(made.name, `${PREFIX}sdk`);
  assert.match(made.uuid, /^[0-9a-f-]{36}$/);
  assert.equal(made.version, "production");
  assert.ok(!Number.isNaN(Date.parse(made.created_at)), made.created_at);
  const got = await d1.get(made.uuid, { account_id });
  for (const field of ["uuid", "name", "created_at", "version"]) assert.equal(got[field], made[field], field);
  assert.equal(typeof got.file_size, "number");
  assert.equal(typeof got.num_tables, "number");
  assert.ok(["auto", "disabled"].includes(got.read_replication.mode));
  assert.deepEqual(await d1.get(made.uuid, { account_id, fields: ["uuid", "name"] }), { uuid: made.uuid, name: made.name });
  assert.equal((await d1.get(made.name, { account_id })).uuid, made.uuid, "by name too");
  assert.equal(await d1.delete(made.uuid, { account_id }), null);
  await throws(() => d1.get(made.uuid, { account_id }), { Class: Cloudflare.NotFoundError, status: 404 });
});

await report.test("create conflict is sent once", async () => {
  const { name } = await freshDatabase(server, "sdk-conflict");
  const thrown = await throws(() => d1.create({ account_id, name }), { Class: Cloudflare.APIError, code: 7502 });
  assert.ok([400, 409].includes(thrown.status), `status ${thrown.status}`);
  assert.equal((await server.databases(name)).length, 1);
});

await report.test("create without a usable name", async () => {
  for (const name of ["", "x".repeat(600)]) {
    await throws(() => d1.create({ account_id, name }), { Class: Cloudflare.BadRequestError, status: 400 });
  }
});

await report.test("list stops", async () => {
  const made = [];
  for (let k = 0; k < 3; k++) made.push((await freshDatabase(server, `sdk-list-${k}`)).uuid);
  sent.length = 0;
  const seen = [];
  for await (const row of d1.list({ account_id, per_page: 10 })) {
    seen.push(row);
    assert.ok(seen.length < 10_000 && sent.length < 1_000, "the list does not end");
  }
  assert.equal(new Set(seen.map((row) => row.uuid)).size, seen.length, "no row twice");
  for (const uuid of made) assert.ok(seen.some((row) => row.uuid === uuid), `${uuid} is listed`);
  assert.equal(sent.length, Math.ceil(seen.length / 10) + 1, "one page past the last, which is empty");
  const named = [];
  for await (const row of d1.list({ account_id, name: `${PREFIX}sdk-list-1` })) named.push(row.uuid);
  assert.deepEqual(named, [made[1]], "the filter by name");
});

await report.test("edit and update the read replication", async () => {
  const { uuid } = await freshDatabase(server, "sdk-edit");
  assert.equal((await d1.edit(uuid, { account_id, read_replication: { mode: "auto" } })).read_replication.mode, "auto");
  assert.equal((await d1.get(uuid, { account_id })).read_replication.mode, "auto");
  assert.equal((await d1.update(uuid, { account_id, read_replication: { mode: "disabled" } })).read_replication.mode, "disabled");
  await throws(() => d1.edit(uuid, { account_id, read_replication: { mode: "sideways" } }), { Class: Cloudflare.BadRequestError, status: 400 });
  await throws(() => d1.edit(NOBODY, { account_id, read_replication: { mode: "auto" } }), { Class: Cloudflare.NotFoundError, status: 404 });
});

const shared = await freshDatabase(server, "sdk-query");

await report.test("query", async () => {
  const page = await d1.query(shared.uuid, { account_id, sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b REAL); INSERT INTO t (a, b) VALUES ('x', 1.5), ('y', 2)" });
  assert.equal(page.result.length, 2);
  assert.equal(page.result[1].meta.changes, 2);
  const [rows] = (await d1.query(shared.uuid, { account_id, sql: "SELECT * FROM t WHERE a = ? OR id = ?2", params: ["x", "2"] })).result;
  assert.deepEqual(rows.results, [
    { id: 1, a: "x", b: 1.5 },
    { id: 2, a: "y", b: 2 },
  ]);
  assert.equal(rows.success, true);
  for (const field of ["changes", "duration", "last_row_id", "rows_read", "rows_written", "size_after"]) {
    assert.equal(typeof rows.meta[field], "number", `meta.${field}`);
  }
  assert.equal(typeof rows.meta.changed_db, "boolean");
  const walked = [];
  for await (const result of d1.query(shared.uuid, { account_id, sql: "SELECT 1 AS n; SELECT 2 AS n" })) walked.push(result.results[0].n);
  assert.deepEqual(walked, [1, 2]);
  const [scalars] = (await d1.query(shared.uuid, { account_id, sql: "SELECT ?1 AS n, ?2 AS nil, ?3 AS t, ?4 AS f", params: [7, null, true, 1.25] })).result;
  assert.deepEqual(scalars.results, [{ n: 7, nil: null, t: 1, f: 1.25 }]);
});

await report.test("query batch is one transaction", async () => {
  const batch = [
    { sql: "INSERT INTO t (a) VALUES (?)", params: ["batch"] },
    { sql: "SELECT count(*) AS n FROM t WHERE a = ?1", params: ["batch"] },
  ];
  const { result } = await d1.query(shared.uuid, { account_id, batch });
  assert.deepEqual(result[1].results, [{ n: 1 }]);
  await throws(() => d1.query(shared.uuid, { account_id, batch: [{ sql: "DELETE FROM t" }, { sql: "SELECT * FROM nope" }] }), {
    Class: Cloudflare.BadRequestError,
    status: 400,
    code: 7500,
    message: "no such table: nope: SQLITE_ERROR",
  });
  const [count] = (await d1.query(shared.uuid, { account_id, sql: "SELECT count(*) AS n FROM t" })).result;
  assert.deepEqual(count.results, [{ n: 3 }]);
});

await report.test("query failures", async () => {
  const expected = { Class: Cloudflare.BadRequestError, status: 400, code: 7500 };
  const cases = {
    "SELEC 1": 'near "SELEC": syntax error at offset 0: SQLITE_ERROR',
    "SELECT * FROM nope": "no such table: nope: SQLITE_ERROR",
    "SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1": "too many terms in compound SELECT: SQLITE_ERROR",
    [`SELECT ${"?,".repeat(100)}?`]: "too many SQL variables at offset 207: SQLITE_ERROR",
    [`SELECT 1 /*${"x".repeat(100_000)}*/`]: "statement too long: SQLITE_TOOBIG",
  };
  for (const [sql, message] of Object.entries(cases)) {
    const thrown = await throws(() => d1.query(shared.uuid, { account_id, sql }), { ...expected, message });
    assert.deepEqual(thrown.error.result, [], "the result of a failed query is an empty list");
    assert.equal(thrown.error.success, false);
  }
  await throws(() => d1.query(shared.uuid, { account_id, sql: "SELECT ?1, ?2", params: ["one"] }), { ...expected, message: /Wrong number of parameter bindings/ });
  await throws(() => d1.query(shared.uuid, { account_id, sql: "" }), { Class: Cloudflare.BadRequestError, status: 400 });
  await throws(() => d1.query(NOBODY, { account_id, sql: "SELECT 1" }), { Class: Cloudflare.NotFoundError, status: 404 });
  await throws(() => d1.query(shared.uuid, { account_id }), { Class: Cloudflare.BadRequestError, status: 400 });
});

await report.test("raw", async () => {
  const [raw] = (await d1.raw(shared.uuid, { account_id, sql: "SELECT id, a, a FROM t WHERE id <= ?1 ORDER BY id", params: ["2"] })).result;
  assert.deepEqual(raw.results, { columns: ["id", "a", "a"], rows: [[1, "x", "x"], [2, "y", "y"]] });
  assert.equal(raw.meta.rows_written, 0);
  const [empty] = (await d1.raw(shared.uuid, { account_id, sql: "SELECT id, a FROM t WHERE 0" })).result;
  assert.deepEqual(empty.results, { columns: ["id", "a"], rows: [] });
  const { result } = await d1.raw(shared.uuid, { account_id, batch: [{ sql: "SELECT 1 AS one" }, { sql: "SELECT ?1 AS p", params: ["z"] }] });
  assert.deepEqual(result.map((one) => one.results), [
    { columns: ["one"], rows: [[1]] },
    { columns: ["p"], rows: [["z"]] },
  ]);
  await throws(() => d1.raw(shared.uuid, { account_id, sql: "SELECT nocol FROM t" }), {
    Class: Cloudflare.BadRequestError,
    status: 400,
    code: 7500,
    message: "no such column: nocol at offset 7: SQLITE_ERROR",
  });
});

/** The four steps of an import, as the SDK's user takes them. Gives the last answer. */
async function importFile(uuid, text) {
  const etag = createHash("md5").update(text).digest("hex");
  const begun = await d1.import(uuid, { account_id, action: "init", etag });
  assert.equal(typeof begun.filename, "string");
  const put = await fetch(begun.upload_url, { method: "PUT", body: text });
  assert.equal(put.status, 200);
  assert.equal(put.headers.get("etag"), `"${etag}"`);
  let state = await d1.import(uuid, { account_id, action: "ingest", etag, filename: begun.filename });
  for (let k = 0; state.status !== "complete" && state.status !== "error"; k++) {
    assert.ok(k < 60, `still ${state.status} after ${k} polls`);
    assert.ok(Array.isArray(state.messages));
    state = await d1.import(uuid, { account_id, action: "poll", current_bookmark: state.at_bookmark });
  }
  return state;
}

await report.test("import", async () => {
  const { uuid } = await freshDatabase(server, "sdk-import");
  const done = await importFile(uuid, "CREATE TABLE t (a);\nINSERT INTO t VALUES (1), (2);\n");
  assert.equal(done.status, "complete");
  assert.equal(done.success, true);
  assert.equal(done.type, "import");
  assert.match(done.at_bookmark, BOOKMARK);
  assert.match(done.result.final_bookmark, BOOKMARK);
  assert.equal(done.result.num_queries, 2);
  for (const field of ["duration", "rows_read", "rows_written", "size_after", "changes"]) assert.equal(typeof done.result.meta[field], "number", field);
  const [rows] = (await d1.query(uuid, { account_id, sql: "SELECT count(*) AS n FROM t" })).result;
  assert.deepEqual(rows.results, [{ n: 2 }]);
});

await report.test("import failures", async () => {
  const { uuid } = await freshDatabase(server, "sdk-import-bad");
  // A failure may come as a status or as an error of the call: either way its text is there, and nothing is kept.
  const failed = await importFile(uuid, "CREATE TABLE gone (a);\nINSERT INTO nope VALUES (1);\n");
  assert.equal(failed.status, "error");
  assert.equal(failed.success, true, "the question was answered; the status says how the import fares");
  assert.deepEqual(failed.errors, [failed.error], "wrangler reads the list, the SDK's types the single text");
  assert.match(failed.error, /no such table: nope: SQLITE_ERROR/);
  const [tables] = (await d1.query(uuid, { account_id, sql: "SELECT count(*) AS n FROM sqlite_master WHERE name = 'gone'" })).result;
  assert.deepEqual(tables.results, [{ n: 0 }]);

  await throws(() => d1.import(NOBODY, { account_id, action: "init", etag: "0".repeat(32) }), { Class: Cloudflare.NotFoundError, status: 404 });
  await throws(() => d1.import(uuid, { account_id, action: "ingest", etag: "0".repeat(32), filename: "never-uploaded.sql" }), { Class: Cloudflare.APIError });
  await throws(() => d1.import(uuid, { account_id, action: "sideways" }), { Class: Cloudflare.BadRequestError, status: 400 });

  const begun = await d1.import(uuid, { account_id, action: "init", etag: createHash("md5").update("one").digest("hex") });
  const other = await fetch(begun.upload_url, { method: "PUT", body: "another text" });
  const told = other.headers.get("etag") ?? "";
  assert.ok(!other.ok || told === `"${createHash("md5").update("another text").digest("hex")}"`, "bytes of another digest are refused, or their own digest is told");
});

await report.test("export", async () => {
  const { uuid } = await freshDatabase(server, "sdk-export");
  await d1.query(uuid, { account_id, sql: "CREATE TABLE a (x); CREATE TABLE b (y); INSERT INTO a VALUES (41); INSERT INTO b VALUES (42)" });
  const dump = async (dump_options) => {
    let state = await d1.export(uuid, { account_id, output_format: "polling", dump_options });
    for (let k = 0; state.status !== "complete" && state.status !== "error"; k++) {
      assert.ok(k < 60, `still ${state.status} after ${k} polls`);
      state = await d1.export(uuid, { account_id, output_format: "polling", dump_options, current_bookmark: state.at_bookmark });
    }
    assert.equal(state.status, "complete", state.error);
    assert.equal(state.type, "export");
    assert.match(state.at_bookmark, BOOKMARK);
    const file = await fetch(state.result.signed_url);
    assert.equal(file.status, 200, "the signed URL needs no key");
    return file.text();
  };
  const full = await dump(undefined);
  assert.ok(full.startsWith("PRAGMA defer_foreign_keys=TRUE;"));
  assert.match(full, /41/);
  assert.doesNotMatch(await dump({ no_data: true }), /INSERT/);
  assert.doesNotMatch(await dump({ no_schema: true }), /CREATE TABLE/);
  assert.doesNotMatch(await dump({ tables: ["b"] }), /41/);
  await throws(() => d1.export(NOBODY, { account_id, output_format: "polling" }), { Class: Cloudflare.NotFoundError, status: 404 });
});

await report.test("delete failure", async () => {
  await throws(() => d1.delete(NOBODY, { account_id }), { Class: Cloudflare.NotFoundError, status: 404 });
});

await report.test("time travel is answered with 501, once", async () => {
  const expected = { Class: Cloudflare.InternalServerError, status: 501 };
  await throws(() => d1.timeTravel.getBookmark(shared.uuid, { account_id }), expected);
  await throws(() => d1.timeTravel.getBookmark(shared.uuid, { account_id, timestamp: new Date().toISOString() }), expected);
  await throws(() => d1.timeTravel.restore(shared.uuid, { account_id, timestamp: new Date().toISOString() }), expected);
});

await report.test("a wrong token", async () => {
  const stranger = client.withOptions({ apiToken: "not-the-key" });
  const thrown = await throws(() => stranger.d1.database.get(shared.uuid, { account_id }), { Class: Cloudflare.APIError, code: 10000 });
  assert.ok([400, 401, 403].includes(thrown.status), `status ${thrown.status}`);
});

await report.test("an account that is not there", async () => {
  await throws(() => d1.get(shared.uuid, { account_id: "f".repeat(32) }), { Class: Cloudflare.APIError });
});

await report.test("the key as X-Auth-Key", async () => {
  const other = new Cloudflare({ baseURL: server.api, apiToken: null, apiKey: server.key, apiEmail: "owner@example.com" });
  assert.equal((await other.d1.database.get(shared.uuid, { account_id })).uuid, shared.uuid);
});

await finish(report, server);
