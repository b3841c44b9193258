// "Migrations are ordered files", the ledger and its drift.

import assert from "node:assert/strict";
import { freshDatabase } from "../lib/names.mjs";
import { exited, plain, says } from "../lib/suite.mjs";

const FILES = 330;
const LEDGER = 136;
const LATEST = "0133_charlie_audit.sql";

function fileName(k) {
  const number = String(k).padStart(4, "0");
  return k === 133 ? LATEST : `${number}_step_${k}.sql`;
}

/** The names of migration files in a table that wrangler printed. */
function listed(run) {
  return [...new Set(plain(run.stdout).match(/\b\d{4}_\w+\.sql\b/g) ?? [])];
}

/**
 * 330 files and 136 rows, of which eight name files that are gone: 128 files are recorded, 202 are listed as pending.
 */
async function drift({ target, project }) {
  const made = await freshDatabase(target, "loop-content-spine");
  project.config({ database_name: made.name, database_id: made.uuid });
  for (let k = 1; k <= FILES; k++) project.write(`migrations/${fileName(k)}`, `CREATE TABLE IF NOT EXISTS t${k} (a);\n`);
  const recorded = [];
  for (let k = 1; k <= 8; k++) recorded.push(`0000_lost_${k}.sql`);
  for (let k = 6; k <= 133; k++) recorded.push(fileName(k));
  assert.equal(recorded.length, LEDGER);
  const rows = recorded.map((name) => `INSERT INTO d1_migrations (name) VALUES ('${name}');`).join("\n");
  project.write(
    "ledger.sql",
    `CREATE TABLE d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL);\n${rows}\n`,
  );
  await project.d1("execute", made.name, "--remote", "--file", "ledger.sql");

  const [ledger] = await project.sql(made.name, "SELECT COUNT(*) applied, MAX(name) latest FROM d1_migrations");
  assert.deepEqual(ledger.results, [{ applied: LEDGER, latest: LATEST }]);
  assert.equal(ledger.meta.rows_read, LEDGER);
  assert.equal(project.list("migrations").length, FILES);

  const list = await project.d1("migrations", "list", made.name, "--remote");
  says(list, "Migrations to be applied:");
  assert.equal(listed(list).length, 202);
  assert.ok(listed(list).includes(fileName(5)) && !listed(list).includes(LATEST));

  // The next number is the last file's plus one, as printed in the document.
  const created = await project.d1("migrations", "create", made.name, "add_tenant_index");
  says(created, "0331_add_tenant_index.sql");
  assert.ok(plain(created.stdout).includes("migrations/0331_add_tenant_index.sql"), `no path in\n${created.stdout}`);
  assert.match(project.read("migrations/0331_add_tenant_index.sql"), /^-- Migration number: 0331/);
}

/** First the preview database, then production: the same folder, two ledgers. */
async function previewThenProduction({ target, project }) {
  const preview = await freshDatabase(target, "spine-preview");
  const production = await freshDatabase(target, "spine-production");
  project.config(
    { database_name: production.name, database_id: production.uuid },
    { database_name: preview.name, database_id: preview.uuid },
  );
  project.write("migrations/0001_articles.sql", "CREATE TABLE articles (slug TEXT PRIMARY KEY, register TEXT);\n");
  project.write("migrations/0002_add_tenant_index.sql", "CREATE INDEX IF NOT EXISTS idx_articles_register ON articles(register);\n");
  assert.deepEqual(listed(await project.d1("migrations", "list", production.name, "--remote")), ["0001_articles.sql", "0002_add_tenant_index.sql"]);

  exited(await project.wrangler("d1", "migrations", "apply", preview.name, "--remote"), 0);
  assert.equal(listed(await project.d1("migrations", "list", preview.name, "--remote")).length, 0);
  assert.equal(listed(await project.d1("migrations", "list", production.name, "--remote")).length, 2, "production is as it was");
  exited(await project.wrangler("d1", "migrations", "apply", production.name, "--remote"), 0);

  for (const { name } of [preview, production]) {
    const [check] = await project.sql(name, "SELECT COUNT(*) applied, MAX(name) latest FROM d1_migrations");
    assert.deepEqual(check.results, [{ applied: 2, latest: "0002_add_tenant_index.sql" }]);
  }
}

/** The document's repair: put the missing names into the ledger, then go on with apply. */
async function repair({ target, project }) {
  const made = await freshDatabase(target, "spine-repair");
  project.config({ database_name: made.name, database_id: made.uuid });
  project.write("migrations/0001_pushed_by_hand.sql", "CREATE TABLE pushed (a);\n");
  project.write("migrations/0002_next.sql", "CREATE TABLE next_one (a);\n");
  await project.d1("execute", made.name, "--remote", "--command", "CREATE TABLE pushed (a)");
  assert.equal(listed(await project.d1("migrations", "list", made.name, "--remote")).length, 2);
  exited(await project.wrangler("d1", "migrations", "apply", made.name, "--remote"), 1);
  await project.d1("execute", made.name, "--remote", "--command", "INSERT INTO d1_migrations (name) VALUES ('0001_pushed_by_hand.sql')");
  assert.deepEqual(listed(await project.d1("migrations", "list", made.name, "--remote")), ["0002_next.sql"]);
  await project.d1("migrations", "apply", made.name, "--remote");
  const [check] = await project.sql(made.name, "SELECT COUNT(*) applied, MAX(name) latest FROM d1_migrations");
  assert.deepEqual(check.results, [{ applied: 2, latest: "0002_next.sql" }]);
}

export default [
  { name: "migration drift", body: drift, brief: true },
  { name: "migrations to preview, then production", body: previewThenProduction },
  { name: "migration repair", body: repair },
];
