// wrangler d1 execute, with --command and with --file.

import assert from "node:assert/strict";
import { freshDatabase } from "../lib/names.mjs";
import { exited, failsWith, plain, says } from "../lib/suite.mjs";

const META = ["duration", "changes", "last_row_id", "changed_db", "size_after", "rows_read", "rows_written"];

/** Rows as they stand in the database, asked for without wrangler: a run of it costs a second. */
async function rows(target, uuid, sql) {
  const [{ results }] = await target.query(uuid, sql);
  return results;
}

/** The JSON array that ends what wrangler printed in text mode. */
function jsonTail(run) {
  const text = plain(run.stdout);
  return JSON.parse(text.slice(text.indexOf("\n[\n") + 1));
}

async function command({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "command");
  const run = exited(await project.wrangler("d1", "execute", name, "--remote", "--command", "SELECT 1 AS a, 'x' AS b"), 0);
  says(run, `🌀 Executing on remote database ${name} (${uuid}):`);
  says(run, "🚣 Executed 1 command in ");
  const [{ results, success, meta }] = jsonTail(run);
  assert.deepEqual(Object.keys(jsonTail(run)[0]), ["results", "success", "meta"], "the keys in the order of the wire");
  assert.deepEqual(results, [{ a: 1, b: "x" }]);
  assert.equal(success, true);
  for (const field of META) assert.ok(field in meta, `meta.${field}`);
}

async function commandJson({ target, project }) {
  const { name } = await freshDatabase(target, "command-json");
  const execute = (sql) => project.sql(name, sql);
  const [table] = await execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b REAL)");
  assert.equal(table.success, true);
  assert.deepEqual(table.results, []);
  assert.deepEqual(pick(table.meta), { changes: 0, changed_db: true, rows_written: 2 });
  const [insert] = await execute("INSERT INTO t (a, b) VALUES ('one', 1.5), ('zwei é 漢 😀', 2), (NULL, NULL)");
  assert.deepEqual(insert.results, []);
  assert.deepEqual(pick(insert.meta), { changes: 3, changed_db: true, rows_written: 3 });
  assert.equal(insert.meta.last_row_id, 3);
  const [select] = await execute("SELECT * FROM t ORDER BY id");
  assert.deepEqual(select.results, [
    { id: 1, a: "one", b: 1.5 },
    { id: 2, a: "zwei é 漢 😀", b: 2 },
    { id: 3, a: null, b: null },
  ]);
  assert.deepEqual(pick(select.meta), { changes: 0, changed_db: false, rows_written: 0 });
  assert.equal(select.meta.rows_read, 3);
  assert.ok(select.meta.size_after >= 8192 && select.meta.size_after % 4096 === 0, `size_after ${select.meta.size_after}`);
  assert.equal(typeof select.meta.duration, "number");
  assert.equal(typeof select.meta.timings.sql_duration_ms, "number");
  const [update] = await execute("UPDATE t SET b = 9 WHERE id = 1 RETURNING id, b");
  assert.deepEqual(update.results, [{ id: 1, b: 9 }]);
  assert.equal(update.meta.changes, 1);
  const [values] = await execute("SELECT 9007199254740992 AS big, X'00ff' AS blob, 1.0 AS f, 0.1 + 0.2 AS g, '' AS e");
  assert.deepEqual(values.results, [{ big: 9007199254740992, blob: [0, 255], f: 1, g: 0.30000000000000004, e: "" }]);
}

function pick({ changes, changed_db, rows_written }) {
  return { changes, changed_db, rows_written };
}

/** Statements joined by `;` are one transaction and give one result each. */
async function several({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "several");
  const results = await project.sql(name, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); SELECT count(*) AS n FROM t; SELECT ';' AS semi -- end; here");
  assert.equal(results.length, 4);
  assert.deepEqual(results[2].results, [{ n: 2 }]);
  assert.deepEqual(results[3].results, [{ semi: ";" }]);
  const failed = exited(await project.wrangler("d1", "execute", name, "--remote", "--json", "--command", "DELETE FROM t; INSERT INTO nope VALUES (1)"), 1);
  assert.equal(JSON.parse(failed.stdout).error.notes[0].text, "no such table: nope: SQLITE_ERROR [code: 7500]");
  assert.deepEqual(await rows(target, uuid, "SELECT count(*) AS n FROM t"), [{ n: 2 }], "the DELETE was rolled back");
}

async function commandError({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "error");
  const path = `/accounts/${target.account}/d1/database/${uuid}/query`;
  const text = failsWith(await project.wrangler("d1", "execute", name, "--remote", "--command", "SELECT * FROM nope"), "no such table: nope: SQLITE_ERROR [code: 7500]");
  says(text, `A request to the Cloudflare API (${path}) failed.`, "stderr");
  const json = exited(await project.wrangler("d1", "execute", name, "--remote", "--json", "--command", "SELECT * FROM nope"), 1);
  assert.deepEqual(JSON.parse(json.stdout), {
    error: {
      text: `A request to the Cloudflare API (${path}) failed.`,
      notes: [{ text: "no such table: nope: SQLITE_ERROR [code: 7500]" }],
      kind: "error",
      name: "APIError",
      code: 7500,
      accountTag: target.account,
    },
  });
  const exact = {
    "SELEC 1": 'near "SELEC": syntax error at offset 0: SQLITE_ERROR [code: 7500]',
    "SELECT nocol": "no such column: nocol at offset 7: SQLITE_ERROR [code: 7500]",
    "SELECT sqlite_version()": "not authorized to use function: sqlite_version at offset 7: SQLITE_ERROR [code: 7500]",
    "ATTACH ':memory:' AS other": "not authorized: SQLITE_AUTH [code: 7500]",
    "SELECT ?101": "variable number must be between ?1 and ?100 at offset 7: SQLITE_ERROR [code: 7500]",
  };
  for (const [sql, line] of Object.entries(exact)) {
    failsWith(await project.wrangler("d1", "execute", name, "--remote", "--command", sql), line);
  }
}

async function constraint({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "constraint");
  await target.query(uuid, "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE); INSERT INTO t VALUES (1, 'a')");
  const run = exited(await project.wrangler("d1", "execute", name, "--remote", "--command", "INSERT INTO t (u) VALUES ('a')"), 1);
  assert.match(plain(run.stderr), /UNIQUE constraint failed: t\.u: SQLITE_CONSTRAINT( \(extended: SQLITE_CONSTRAINT_UNIQUE\))? \[code: 7500\]/);
}

async function file({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "file");
  project.write(
    "ok.sql",
    "-- a comment; with a semicolon\nCREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);\nINSERT INTO t (a) VALUES ('x;y'), ('it''s'), ('line\nbreak');\n" +
      "CREATE TRIGGER tr AFTER INSERT ON t BEGIN\n  UPDATE t SET a = a || '!' WHERE id = new.id;\nEND;\nINSERT INTO t (a) VALUES ('last');\n",
  );
  const run = exited(await project.wrangler("d1", "execute", name, "--remote", "--file", "ok.sql"), 0);
  says(run, "🌀 Uploading complete.");
  says(run, "🚣 Executed 4 queries in ");
  const [{ results, success, finalBookmark, meta }] = jsonTail(run);
  assert.equal(results[0]["Total queries executed"], 4);
  assert.equal(success, true);
  assert.match(finalBookmark, /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/);
  for (const field of META) assert.ok(field in meta, `meta.${field}`);
  assert.equal(results[0]["Rows written"], meta.rows_written);
  assert.deepEqual(
    (await rows(target, uuid, "SELECT a FROM t ORDER BY id")).map((row) => row.a),
    ["x;y", "it's", "line\nbreak", "last!"],
  );
}

async function fileJson({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "file-json");
  project.write("ok.sql", "CREATE TABLE t (a);\nINSERT INTO t VALUES (1);\n");
  const run = exited(await project.wrangler("d1", "execute", name, "--remote", "--json", "--file", "ok.sql"), 0);
  assert.equal(jsonTail(run)[0].results[0]["Total queries executed"], 2);
  assert.deepEqual(await rows(target, uuid, "SELECT a FROM t"), [{ a: 1 }]);
  // The very same file once more: it is run again, even if its bytes need not be sent twice.
  project.write("again.sql", "INSERT INTO t VALUES (2);\n");
  for (let k = 0; k < 2; k++) exited(await project.wrangler("d1", "execute", name, "--remote", "--json", "--file", "again.sql"), 0);
  assert.deepEqual(await rows(target, uuid, "SELECT count(*) AS n FROM t"), [{ n: 3 }]);
  project.runs.splice(-2); // whether bytes are sent again is the server's choice
}

async function fileFailing({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "file-failing");
  await target.query(uuid, "CREATE TABLE kept (a); INSERT INTO kept VALUES (1)");
  project.write("bad.sql", "CREATE TABLE gone (a);\nINSERT INTO gone VALUES (1);\nDELETE FROM kept;\nINSERT INTO nope VALUES (1);\nCREATE TABLE never (a);\n");
  const text = exited(await project.wrangler("d1", "execute", name, "--remote", "--file", "bad.sql"), 1);
  assert.match(plain(text.stderr), /no such table: nope: SQLITE_ERROR/);
  const json = exited(await project.wrangler("d1", "execute", name, "--remote", "--json", "--file", "bad.sql"), 1);
  const tail = json.stdout.slice(json.stdout.indexOf("\n{\n"));
  assert.match(JSON.parse(tail).error.text, /no such table: nope: SQLITE_ERROR/);
  const tables = await rows(target, uuid, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*' ORDER BY name");
  assert.deepEqual(tables, [{ name: "kept" }], "nothing of the file was kept");
  assert.deepEqual(await rows(target, uuid, "SELECT count(*) AS n FROM kept"), [{ n: 1 }]);
}

/** A file far over the limit of one statement, made of statements within it. */
async function fileLarge({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "file-large");
  const row = "x".repeat(900);
  const lines = ["CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);"];
  for (let k = 0; k < 3000; k++) lines.push(`INSERT INTO t (a) VALUES ('${row}${k}');`);
  project.write("large.sql", lines.join("\n"));
  const run = exited(await project.wrangler("d1", "execute", name, "--remote", "--file", "large.sql"), 0);
  says(run, "🚣 Executed 3001 queries in ");
  assert.deepEqual(await rows(target, uuid, "SELECT count(*) AS n FROM t"), [{ n: 3000 }]);
}

export default [
  { name: "execute command", body: command },
  { name: "execute command json", body: commandJson },
  { name: "execute several statements", body: several },
  { name: "execute error", body: commandError },
  { name: "execute constraint", body: constraint },
  { name: "execute file", body: file },
  { name: "execute file json", body: fileJson },
  { name: "execute failing file", body: fileFailing },
  { name: "execute large file", body: fileLarge },
];
