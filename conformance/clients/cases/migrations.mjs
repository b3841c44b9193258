// wrangler d1 migrations create, list, apply.

import assert from "node:assert/strict";
import { freshDatabase } from "../lib/names.mjs";
import { exited, failsWith, plain, says } from "../lib/suite.mjs";

async function bound({ target, project }, name) {
  const made = await freshDatabase(target, name);
  project.config({ database_name: made.name, database_id: made.uuid });
  return made;
}

async function ledger(target, uuid) {
  const [{ results }] = await target.query(uuid, "SELECT id, name FROM d1_migrations ORDER BY id");
  return results;
}

async function tables(target, uuid) {
  const [{ results }] = await target.query(uuid, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_cf_*' AND name <> 'd1_migrations' ORDER BY name");
  return results.map((row) => row.name);
}

async function lifecycle(context) {
  const { target, project } = context;
  const { name, uuid } = await bound(context, "migrations");
  const made = exited(await project.wrangler("d1", "migrations", "create", name, "add_tenant_index"), 0);
  says(made, "0001_add_tenant_index.sql");
  assert.deepEqual(project.list("migrations"), ["0001_add_tenant_index.sql"]);
  assert.match(project.read("migrations/0001_add_tenant_index.sql"), /^-- Migration number: 0001 \t \d{4}-\d\d-\d\dT/);
  project.write("migrations/0001_add_tenant_index.sql", "CREATE TABLE articles (id INTEGER PRIMARY KEY, register TEXT);\nCREATE INDEX IF NOT EXISTS idx_articles_register ON articles(register);\n");
  exited(await project.wrangler("d1", "migrations", "create", name, "seed rows"), 0);
  assert.deepEqual(project.list("migrations"), ["0001_add_tenant_index.sql", "0002_seed_rows.sql"]);
  project.write("migrations/0002_seed_rows.sql", "INSERT INTO articles (register) VALUES ('a;b'), ('c');");

  const pending = exited(await project.wrangler("d1", "migrations", "list", name, "--remote"), 0);
  says(pending, "Migrations to be applied:");
  says(pending, "0001_add_tenant_index.sql");
  says(pending, "0002_seed_rows.sql");
  assert.deepEqual(await tables(target, uuid), [], "list applies nothing");

  const applied = exited(await project.wrangler("d1", "migrations", "apply", name, "--remote"), 0);
  assert.equal(plain(applied.stdout).split("✅").length > 2, true, `two ticks in\n${applied.stdout}`);
  assert.deepEqual(await ledger(target, uuid), [
    { id: 1, name: "0001_add_tenant_index.sql" },
    { id: 2, name: "0002_seed_rows.sql" },
  ]);
  const [{ results }] = await target.query(uuid, "SELECT count(*) AS n, max(register) AS last FROM articles");
  assert.deepEqual(results, [{ n: 2, last: "c" }]);

  says(exited(await project.wrangler("d1", "migrations", "list", name, "--remote"), 0), "✅ No migrations to apply!");
  says(exited(await project.wrangler("d1", "migrations", "apply", name, "--remote"), 0), "✅ No migrations to apply!");
  const [{ results: stamps }] = await target.query(uuid, "SELECT applied_at FROM d1_migrations");
  for (const { applied_at } of stamps) assert.match(applied_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
}

/** A migration that fails in its middle leaves nothing of itself, and the ledger as it was. */
async function failing(context) {
  const { target, project } = context;
  const { name, uuid } = await bound(context, "migrations-failing");
  project.write("migrations/0001_good.sql", "CREATE TABLE good (a);\n");
  project.write("migrations/0002_bad.sql", "CREATE TABLE half (a);\nINSERT INTO good VALUES (1);\nINSERT INTO nope VALUES (1);\nCREATE TABLE never (a);\n");
  project.write("migrations/0003_after.sql", "CREATE TABLE after_it (a);\n");
  const run = exited(await project.wrangler("d1", "migrations", "apply", name, "--remote"), 1);
  assert.match(plain(run.stdout + run.stderr), /no such table: nope: SQLITE_ERROR \[code: 7500\]/);
  assert.deepEqual(await ledger(target, uuid), [{ id: 1, name: "0001_good.sql" }]);
  assert.deepEqual(await tables(target, uuid), ["good"]);
  const [{ results }] = await target.query(uuid, "SELECT count(*) AS n FROM good");
  assert.deepEqual(results, [{ n: 0 }], "its INSERT was rolled back");
  const pending = says(exited(await project.wrangler("d1", "migrations", "list", name, "--remote"), 0), "0002_bad.sql");
  says(pending, "0003_after.sql");
  project.write("migrations/0002_bad.sql", "CREATE TABLE half (a);\n");
  exited(await project.wrangler("d1", "migrations", "apply", name, "--remote"), 0);
  assert.deepEqual((await ledger(target, uuid)).map((row) => row.name), ["0001_good.sql", "0002_bad.sql", "0003_after.sql"]);
}

/** Production's splitter trips over CRLF and over a lower-case `end`: here the statement stays whole. */
async function crlfTrigger(context) {
  const { target, project } = context;
  const { name, uuid } = await bound(context, "migrations-crlf");
  const lines = [
    "CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER, kind TEXT);",
    "CREATE TABLE audit (id INTEGER PRIMARY KEY, note TEXT);",
    "create trigger items_ai after insert on items",
    "begin",
    "  insert into audit (note) values (case when new.n > 1 then 'many' else 'one' end);",
    "  update items set kind = 'seen;' where id = new.id;",
    "end;",
    "INSERT INTO items (n) VALUES (2);",
    "",
  ];
  project.write("migrations/0001_trigger.sql", lines.join("\r\n"));
  exited(await project.wrangler("d1", "migrations", "apply", name, "--remote"), 0);
  assert.deepEqual(await ledger(target, uuid), [{ id: 1, name: "0001_trigger.sql" }]);
  const [audit, items] = await target.query(uuid, "SELECT note FROM audit; SELECT n, kind FROM items");
  assert.deepEqual(audit.results, [{ note: "many" }]);
  assert.deepEqual(items.results, [{ n: 2, kind: "seen;" }]);
}

/** The database must stand in the project's config: wrangler's own rule. */
async function notInConfig({ target, project }) {
  const { name } = await freshDatabase(target, "migrations-unbound");
  const line = `Couldn't find a D1 DB with the name or binding '${name}' in your wrangler.jsonc file.`;
  failsWith(await project.wrangler("d1", "migrations", "list", name, "--remote"), line);
}

export default [
  { name: "migrations", body: lifecycle },
  { name: "migrations failing", body: failing },
  { name: "migrations crlf trigger", body: crlfTrigger },
  { name: "migrations not in config", body: notInConfig },
];
