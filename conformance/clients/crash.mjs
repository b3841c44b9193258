// The server is killed (SIGKILL) under a client: what the client says, and what is in the database afterwards.
//
//   HEARTH_BIN=… node crash.mjs [--wrangler latest] [--only TEXT]
//
// wrangler reaches the server through a door, which kills it just before the request that the case is about.

import assert from "node:assert/strict";
import { join } from "node:path";
import { Door } from "./lib/door.mjs";
import { freshDatabase } from "./lib/names.mjs";
import { runToEnd } from "./lib/project.mjs";
import { finish } from "./lib/report.mjs";
import { serve } from "./lib/serve.mjs";
import { exited, failsWith, option, plain, runCases, says } from "./lib/suite.mjs";
import { Target } from "./lib/target.mjs";
import { workFolder } from "./lib/workdir.mjs";

const bin = process.env.HEARTH_BIN;
const workdir = workFolder();
const data = join(workdir, "crash-data");
const FILE = "CREATE TABLE t (a);\nINSERT INTO t VALUES (1), (2);\n";
/** Far more than can be done before the first poll. */
const LONG = `CREATE TABLE long (a);\n${"INSERT INTO long WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000) SELECT x FROM c;\n".repeat(40)}`;

let server = await serve(bin, data);
const door = await new Door(server.url).open();
const account = "00000000000000000000000000000001";
const target = new Target(door.url, server.key, account, workdir, { stop: () => server.stop(), log: () => server.log() });

async function kill() {
  await server.kill();
}

async function restart() {
  server = await serve(bin, data);
  door.backend = server.url;
}

/** Kills the server before the first request that `matches`, and starts it again unless told not to. */
function killBefore(matches, { again = true } = {}) {
  const fired = { times: 0 };
  door.before = async (one) => {
    if (!matches(one) || fired.times > 0) return;
    fired.times += 1;
    await kill();
    if (again) await restart();
  };
  return fired;
}

const action = (name) => ({ path, body }) => path.endsWith("/import") && body.includes(`"action":"${name}"`);

async function tables(uuid) {
  const [{ results }] = await target.query(uuid, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*' AND name NOT GLOB 'sqlite_*' ORDER BY name");
  return results.map(({ name }) => name);
}

/** After the failure the same command, once more, does what it should have done. */
async function onceMore(project, { name, uuid }) {
  door.before = async () => {};
  exited(await project.wrangler("d1", "execute", name, "--remote", "--file", "file.sql"), 0);
  const [{ results }] = await target.query(uuid, "SELECT count(*) AS n FROM t");
  assert.deepEqual(results, [{ n: 2 }]);
}

async function beforeUpload({ project }) {
  const made = await freshDatabase(target, "crash-upload");
  project.write("file.sql", FILE);
  const fired = killBefore(({ method }) => method === "PUT");
  const run = exited(await project.wrangler("d1", "execute", made.name, "--remote", "--file", "file.sql"), 1);
  assert.equal(fired.times, 1);
  says(run, "File could not be uploaded. Please retry.", "stderr");
  says(run, "start the import again", "stderr");
  assert.deepEqual(await tables(made.uuid), []);
  await onceMore(project, made);
}

async function beforeIngest({ project }) {
  const made = await freshDatabase(target, "crash-ingest");
  project.write("file.sql", FILE);
  const fired = killBefore(action("ingest"));
  const run = await project.wrangler("d1", "execute", made.name, "--remote", "--file", "file.sql");
  assert.equal(fired.times, 1);
  failsWith(run, "no file of this name was uploaded for this database; start the import again [code: 7500]");
  assert.deepEqual(await tables(made.uuid), []);
  await onceMore(project, made);
}

async function beforeIngestAndGone({ project }) {
  const made = await freshDatabase(target, "crash-gone");
  project.write("file.sql", FILE);
  const fired = killBefore(action("ingest"), { again: false });
  const run = exited(await project.wrangler("d1", "execute", made.name, "--remote", "--file", "file.sql"), 1);
  assert.equal(fired.times, 1);
  assert.match(plain(run.stderr), /fetch failed/);
  await restart();
  assert.deepEqual(await tables(made.uuid), []);
  await onceMore(project, made);
}

async function underImport({ project }) {
  const made = await freshDatabase(target, "crash-import");
  await target.query(made.uuid, "CREATE TABLE kept (a); INSERT INTO kept VALUES (1)");
  project.write("long.sql", LONG);
  const fired = killBefore(action("poll"));
  const run = await project.wrangler("d1", "execute", made.name, "--remote", "--file", "long.sql");
  assert.equal(fired.times, 1, "the import was done before the first poll");
  failsWith(run, "Not currently importing anything. [code: 7500]");
  assert.deepEqual(await tables(made.uuid), ["kept"], "nothing of the file is there");
  const [{ results }] = await target.query(made.uuid, "SELECT count(*) AS n FROM kept");
  assert.deepEqual(results, [{ n: 1 }]);
}

async function afterWrites({ project }) {
  const made = await freshDatabase(target, "crash-after");
  exited(await project.wrangler("d1", "execute", made.name, "--remote", "--command", "CREATE TABLE w (a); INSERT INTO w VALUES ('wrangler')"), 0);
  const env = { PATH: process.env.PATH, HEARTH_URL: target.url, HEARTH_KEY: target.key };
  exited(await runToEnd(bin, ["d1", "execute", made.name, "--command", "INSERT INTO w VALUES ('hearth')"], { env }), 0);
  project.config({ database_name: made.name, database_id: made.uuid });
  project.write("migrations/0001_more.sql", "CREATE TABLE more (a);\n");
  exited(await project.wrangler("d1", "migrations", "apply", made.name, "--remote"), 0);
  await kill();
  await restart();
  const [rows] = await project.sql(made.name, "SELECT a FROM w ORDER BY rowid");
  assert.deepEqual(rows.results, [{ a: "wrangler" }, { a: "hearth" }]);
  assert.deepEqual(await tables(made.uuid), ["d1_migrations", "more", "w"]);
  assert.equal((await target.result("GET", `/${made.name}`)).uuid, made.uuid);
}

/** A deleted database stays deleted, a new one stays new. */
async function afterChangesOfTheCatalogue({ project }) {
  const gone = await freshDatabase(target, "crash-deleted");
  exited(await project.wrangler("d1", "delete", gone.name, "-y"), 0);
  await target.remove("conformance-crash-created");
  exited(await project.wrangler("d1", "create", "conformance-crash-created"), 0);
  await kill();
  await restart();
  assert.equal((await target.call("GET", `/${gone.uuid}`)).status, 404);
  const created = await target.result("GET", "/conformance-crash-created");
  assert.deepEqual(await tables(created.uuid), []);
}

const report = await runCases({
  part: "crash",
  target,
  wrangler: option("wrangler", "latest"),
  // One server is killed by all of them: one at a time.
  cases: [
    { name: "killed before the upload", body: beforeUpload, alone: true },
    { name: "killed between upload and ingest", body: beforeIngest, alone: true },
    { name: "killed between upload and ingest, and gone", body: beforeIngestAndGone, alone: true },
    { name: "killed under an import", body: underImport, alone: true },
    { name: "killed after acknowledged writes", body: afterWrites, alone: true },
    { name: "killed after changes of the catalogue", body: afterChangesOfTheCatalogue, alone: true },
  ],
  snapshots: false,
});
door.before = async () => {};
await finish(report, target);
await door.close();
