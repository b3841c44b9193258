// An ordinary Worker in the stock workerd binary, with `env.DB` served by Hearth.
//
//   HEARTH_URL=… HEARTH_KEY=… node worker.mjs

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { PREFIX, freshDatabase } from "./lib/names.mjs";
import { Report, finish } from "./lib/report.mjs";
import { target } from "./lib/target.mjs";
import { closedPort, start } from "./lib/workerd.mjs";

const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;
const BYTES = Array.from({ length: 256 }, (_, k) => k);

const server = await target();
const report = new Report("worker");
await server.clear(PREFIX);
const byHost = await freshDatabase(server, "worker-host");
const byProxy = await freshDatabase(server, "worker-proxy");
const address = new URL(server.url).host;
const worker = await start(server, {
  DB: { address, style: "host", uuid: byHost.uuid, key: server.key },
  PROXIED: { address, style: "proxy", uuid: byProxy.uuid, key: server.key },
  GONE: { address: `127.0.0.1:${await closedPort()}`, style: "host", uuid: byHost.uuid, key: server.key },
  STRANGER: { address, style: "host", uuid: byHost.uuid, key: "not-the-key" },
  NOBODY: { address, style: "host", uuid: "00000000-0000-4000-8000-000000000000", key: server.key },
});

try {
  await report.test("the config file is private", () => assert.equal(statSync(worker.file).mode & 0o777, 0o600));
  for (const [style, db] of [["host", "DB"], ["proxy", "PROXIED"]]) await scenarios(style, db);
  await unreachable();
} finally {
  await worker.stop();
}
await finish(report, server);

async function scenarios(style, db) {
  const test = (name, body) => report.test(`${style}: ${name}`, body);
  const value = async (scenario) => {
    const { value: got, error } = await worker.get(scenario, db);
    assert.equal(error, undefined, `${scenario} threw ${JSON.stringify(error)}`);
    return got;
  };
  /** The scenario must throw with this message; gives the error. */
  const throws = async (scenario, message) => {
    const { value: got, error } = await worker.get(scenario, db);
    assert.ok(error, `${scenario} gave ${JSON.stringify(got)?.slice(0, 300)}`);
    if (message instanceof RegExp) assert.match(error.message, message);
    else assert.equal(error.message, message);
    return error;
  };

  await test("setup", async () => assert.equal(await value("setup"), 120));

  await test("the document's snippet", async () => {
    const got = await value("snippet");
    assert.deepEqual([got.read, got.written, got.success], [120, 0, true]);
    assert.equal(typeof got.duration, "number");
    assert.equal(got.results.length, 1);
    assert.equal(got.results[0].slug, "slug-60");
    for (const field of ["changes", "last_row_id", "size_after"]) assert.equal(typeof got.meta[field], "number", field);
    assert.equal(got.meta.changed_db, false);
  });

  await test("run", async () => {
    const { insert, select, returning } = await value("run");
    assert.deepEqual([insert.success, insert.results, insert.meta.changes], [true, [], 1]);
    assert.ok(insert.meta.last_row_id > 0 && insert.meta.changed_db === true);
    assert.equal(insert.meta.rows_written, 2, "the row and its UNIQUE index");
    assert.deepEqual(select, [{ name: "run", n: 7 }]);
    assert.deepEqual(returning, [{ n: 8 }]);
  });

  await test("first", async () => assert.deepEqual(await value("first"), { row: { a: 1, b: "two" }, column: "two", none: null }));
  await test("first of an unknown column", () => throws("firstColumnNotFound", "D1_COLUMN_NOTFOUND: Column not found (nope)"));

  await test("raw", async () => {
    assert.deepEqual(await value("raw"), {
      rows: [[1, 2], [3, 4]],
      named: [["a", "a"], [1, 2], [3, 4]],
      empty: [["slug", "title"]],
    });
  });

  await test("batch", async () => {
    const [one, two, select] = await value("batch");
    for (const insert of [one, two]) assert.deepEqual(insert, { success: true, rows: [], changes: 1, written: 2 });
    assert.deepEqual(select.rows, [{ name: "batch-1" }, { name: "batch-2" }]);
  });
  await test("a failing batch is rolled back", async () => {
    await throws("batchFails", "D1_ERROR: no such table: nope: SQLITE_ERROR");
    await throws("batchPoison", "D1_ERROR: malformed JSON: SQLITE_ERROR");
    await throws("batchFailsOnConstraint", /^D1_ERROR: UNIQUE constraint failed: t\.name: SQLITE_CONSTRAINT/);
    assert.deepEqual(await value("afterFailures"), { lost: 0, articles: 120 });
  });

  await test("exec", async () => {
    const { count, duration } = await value("exec");
    assert.equal(count, 3);
    assert.equal(typeof duration, "number");
  });
  await test("a failing exec", async () => {
    await throws("execFails", "D1_EXEC_ERROR: Error in line 1: INSERT INTO e VALUES (3): no such table: nope: SQLITE_ERROR");
    assert.equal(await value("execAfter"), 0);
  });

  await test("errors", async () => {
    const error = await throws("noTable", "D1_ERROR: no such table: nope: SQLITE_ERROR");
    assert.equal(error.cause, "no such table: nope: SQLITE_ERROR");
    await throws("syntax", 'D1_ERROR: near "SELEC": syntax error at offset 0: SQLITE_ERROR');
    await throws("constraint", /^D1_ERROR: UNIQUE constraint failed: t\.name: SQLITE_CONSTRAINT/);
    await throws("undefinedValue", "D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined'");
    await throws("tooFewParams", "D1_ERROR: Wrong number of parameter bindings for SQL query.");
    await throws("begin", /^D1_ERROR: To execute a transaction, please use the state\.storage\.transaction\(\)/);
    await throws("empty", "D1_ERROR: No SQL statements detected.");
    await throws("compound", "D1_ERROR: too many terms in compound SELECT: SQLITE_ERROR");
  });

  await test("values", async () => {
    const rows = (await value("values")).map(({ id, ...row }) => row);
    const types = ({ ti, tr, ts, tb, ta }) => [ti, tr, ts, tb, ta].join(" ");
    assert.deepEqual(rows.map(types), [
      "integer real text blob null",
      "integer real text blob real",
      "integer real text blob real",
      "integer real text blob text",
      "integer real null null real",
      "null null text blob blob",
    ]);
    assert.deepEqual(rows.map(({ i, r, s, b, any_value }) => [i, r, s, b, any_value]), [
      [0, 0, "", [], null],
      [9007199254740991, 0.30000000000000004, "zwei é 漢 😀 \u0000 'q' \"d\" \\ \n", BYTES, 1],
      [-9007199254740991, 1e300, "x", BYTES, 1.5],
      [9007199254740992, 5e-324, "12", [10, 11, 12, 13], "text"],
      [1, 0, null, null, 0],
      [null, null, "1.0", [1], [255]],
    ]);
  });

  await test("a statement bound twice", async () => assert.deepEqual(await value("reuse"), ["b", "a", "b"]));
  await test("queries in parallel", async () => assert.equal(await value("parallel"), true));
  await test("many rows", async () => {
    const { n, last } = await value("manyRows");
    assert.deepEqual([n, last], [5000, 5000]);
  });

  await test("a value of 2,000,000 bytes", async () => assert.equal(await value("largest"), 2_000_000));
  await test("a value of 2,000,001 bytes", () => throws("tooLarge", "D1_ERROR: string or blob too big: SQLITE_TOOBIG"));
  await test("a statement over 100,000 bytes", () => throws("tooLong", "D1_ERROR: statement too long: SQLITE_TOOBIG"));

  await test("sessions", async () => {
    const got = await value("sessions");
    assert.equal(got.before, null);
    for (const name of ["afterRead", "afterWrite", "afterBatch", "primaryBookmark"]) assert.match(got[name], BOOKMARK, name);
    assert.equal(got.resumed, got.afterWrite);
    assert.deepEqual([got.sees, got.primary, got.ordered], [1, 2, true]);
    await throws("sessionFails", "D1_ERROR: no such table: nope: SQLITE_ERROR");
  });

  await test("dump", async () => {
    const { value: head, error } = await worker.get("dump", db);
    if (error) assert.match(error.message, /^D1_DUMP_ERROR: /);
    else assert.equal(head, "SQLite format 3");
  });
}

async function unreachable() {
  const error = async (scenario, db) => {
    const got = await worker.get(scenario, db);
    assert.ok(got.error, `${scenario} on ${db} gave ${JSON.stringify(got.value)}`);
    return got.error.message;
  };
  await report.test("a server that is not there", async () => {
    assert.match(await error("noTable", "GONE"), /Network connection lost\./);
    assert.match(await error("batch", "GONE"), /Network connection lost\./);
  });
  await report.test("a binding with a wrong key", async () => {
    const message = await error("first", "STRANGER");
    assert.match(message, /^D1_ERROR: /);
    assert.doesNotMatch(message, /Failed to parse body as JSON/);
    assert.ok(!message.includes(server.key));
  });
  await report.test("a binding to a database that is not there", async () => {
    const message = await error("first", "NOBODY");
    assert.match(message, /^D1_ERROR: /);
    assert.doesNotMatch(message, /Failed to parse body as JSON/);
  });
}
