// The program's own client commands beside real wrangler, on the same databases: both see the same.
//
//   HEARTH_URL=… HEARTH_KEY=… HEARTH_BIN=… node cli.mjs [--wrangler latest] [--only TEXT]

import assert from "node:assert/strict";
import { notFound } from "./cases/databases.mjs";
import { PREFIX, freshDatabase } from "./lib/names.mjs";
import { runToEnd } from "./lib/project.mjs";
import { finish } from "./lib/report.mjs";
import { exited, failsWith, option, runCases, says } from "./lib/suite.mjs";
import { target } from "./lib/target.mjs";

const bin = process.env.HEARTH_BIN;
if (!bin) throw new Error("HEARTH_BIN is not set: give the program");
const server = await target();
await server.clear(PREFIX);

/** Runs `hearth ARGS` in the project's folder. */
function hearthWith(env, project, ...args) {
  return runToEnd(bin, args, { cwd: project.dir, env: { PATH: process.env.PATH, HOME: project.home, HEARTH_URL: server.url, HEARTH_KEY: server.key, ...env } });
}
const hearth = (project, ...args) => hearthWith({}, project, ...args);

async function json(project, ...args) {
  return JSON.parse(exited(await hearth(project, ...args, "--json"), 0).stdout);
}

/** Results of a query without what differs from run to run. */
function timeless(results) {
  return results.map(({ meta: { duration, timings, ...meta }, ...rest }) => {
    assert.equal(typeof duration, "number");
    assert.equal(typeof timings.sql_duration_ms, "number");
    return { ...rest, meta };
  });
}

async function life({ project, wrangler }) {
  const name = `${PREFIX}cli-life`;
  const made = await json(project, "d1", "create", name);
  const info = exited(await project.wrangler("d1", "info", name, "--json"), 0);
  assert.equal(JSON.parse(info.stdout).uuid, made.uuid);
  failsWith(await project.wrangler("d1", "create", name), "A database with that name already exists");
  const again = exited(await hearth(project, "d1", "create", name), 1);
  says(again, "[code: 7502]", "stderr");

  const other = `${PREFIX}cli-life-2`;
  exited(await project.wrangler("d1", "create", other), 0);
  const [mine, theirs] = [await json(project, "d1", "list"), JSON.parse(exited(await project.wrangler("d1", "list", "--json"), 0).stdout)];
  assert.deepEqual(mine, theirs);
  assert.ok(mine.some((row) => row.name === other) && mine.some((row) => row.uuid === made.uuid));

  exited(await hearth(project, "d1", "delete", name, "--yes"), 0);
  failsWith(await project.wrangler("d1", "info", name), notFound(wrangler, name));
  exited(await project.wrangler("d1", "delete", other, "-y"), 0);
  says(exited(await hearth(project, "d1", "info", other), 1), "[code: 7404]", "stderr");
}

async function rows({ project }) {
  const { name } = await freshDatabase(server, "cli-rows");
  exited(await hearth(project, "d1", "execute", name, "--command", "CREATE TABLE t (id INTEGER PRIMARY KEY, who TEXT, b BLOB)"), 0);
  await project.sql(name, "INSERT INTO t (who, b) VALUES ('wrangler', X'00ff')");
  exited(await hearth(project, "d1", "execute", name, "--command", "INSERT INTO t (who) VALUES ('hearth é 漢 😀')"), 0);
  project.write("more.sql", "INSERT INTO t (who) VALUES ('from a file');\nINSERT INTO t (who) VALUES ('from a file, too');\n");
  exited(await project.wrangler("d1", "execute", name, "--remote", "--file", "more.sql"), 0);
  exited(await hearth(project, "d1", "import", name, "more.sql"), 0);

  const select = "SELECT * FROM t ORDER BY id; SELECT count(*) AS n, max(length(b)) AS bytes FROM t";
  const [mine, theirs] = [await json(project, "d1", "execute", name, "--command", select), await project.sql(name, select)];
  assert.deepEqual(timeless(mine), timeless(theirs));
  assert.deepEqual(mine[1].results, [{ n: 6, bytes: 2 }]);

  for (const sql of ["SELECT * FROM nope", "SELEC 1", "SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1"]) {
    const failed = exited(await hearth(project, "d1", "execute", name, "--command", sql), 1);
    const line = failed.stderr.split("\n").find((one) => one.startsWith("error: "));
    failsWith(await project.wrangler("d1", "execute", name, "--remote", "--command", sql), line?.slice("error: ".length));
  }
}

async function dumps({ project }) {
  const { name } = await freshDatabase(server, "cli-dump");
  await project.sql(name, "CREATE TABLE a (x, y TEXT); INSERT INTO a VALUES (1, 'one; \"two\"'), (X'00', NULL); CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('the quick fox')");
  exited(await hearth(project, "d1", "export", name, "--output", "mine.sql"), 0);
  exited(await project.wrangler("d1", "export", name, "--remote", "--output", "theirs.sql"), 0);
  assert.equal(project.read("mine.sql"), project.read("theirs.sql"));

  const [one, two] = [await freshDatabase(server, "cli-dump-1"), await freshDatabase(server, "cli-dump-2")];
  exited(await hearth(project, "d1", "import", one.name, "theirs.sql"), 0);
  exited(await project.wrangler("d1", "execute", two.name, "--remote", "--file", "mine.sql"), 0);
  const select = "SELECT * FROM a; SELECT body FROM f WHERE f MATCH 'quick'";
  for (const { name: copy } of [one, two]) {
    const results = await json(project, "d1", "execute", copy, "--command", select);
    assert.deepEqual(results.map((result) => result.results), [[{ x: 1, y: 'one; "two"' }, { x: [0], y: null }], [{ body: "the quick fox" }]]);
  }
}

async function migrations({ project }) {
  const { name, uuid } = await freshDatabase(server, "cli-migrations");
  project.config({ database_name: name, database_id: uuid });
  exited(await project.wrangler("d1", "migrations", "create", name, "one"), 0);
  project.write("migrations/0001_one.sql", "CREATE TABLE one (a);\n");
  says(exited(await hearth(project, "d1", "migrations", "list", name), 0), "0001_one.sql");
  exited(await project.wrangler("d1", "migrations", "apply", name, "--remote"), 0);
  assert.deepEqual(await json(project, "d1", "migrations", "list", name), []);

  exited(await hearth(project, "d1", "migrations", "create", name, "two"), 0);
  assert.deepEqual(project.list("migrations"), ["0001_one.sql", "0002_two.sql"]);
  project.write("migrations/0002_two.sql", "CREATE TABLE two (a);\r\ncreate trigger tr after insert on two\r\nbegin\r\n  delete from one;\r\nend;\r\n");
  says(exited(await project.wrangler("d1", "migrations", "list", name, "--remote"), 0), "0002_two.sql");
  exited(await hearth(project, "d1", "migrations", "apply", name), 0);
  says(exited(await project.wrangler("d1", "migrations", "list", name, "--remote"), 0), "✅ No migrations to apply!");
  exited(await hearth(project, "d1", "migrations", "doctor", name), 0);

  // A schema pushed by hand: both see a pending migration; noted by one, it is applied for the other.
  project.write("migrations/0003_three.sql", "CREATE TABLE three (a);\n");
  await project.sql(name, "CREATE TABLE three (a)");
  exited(await hearth(project, "d1", "migrations", "doctor", name), 1);
  exited(await project.wrangler("d1", "migrations", "apply", name, "--remote"), 1);
  exited(await hearth(project, "d1", "migrations", "apply", name), 1);
  exited(await hearth(project, "d1", "migrations", "mark-applied", name, "0003_three.sql"), 0);
  says(exited(await project.wrangler("d1", "migrations", "list", name, "--remote"), 0), "✅ No migrations to apply!");
  exited(await hearth(project, "d1", "migrations", "doctor", name), 0);

  const [{ results }] = await project.sql(name, "SELECT id, name FROM d1_migrations ORDER BY id");
  assert.deepEqual(results, [{ id: 1, name: "0001_one.sql" }, { id: 2, name: "0002_two.sql" }, { id: 3, name: "0003_three.sql" }]);
}

async function tokens({ project }) {
  const { name } = await freshDatabase(server, "cli-tokens");
  const other = await freshDatabase(server, "cli-tokens-other");
  await server.query(other.uuid, "CREATE TABLE t (a)");
  const { id, value } = await json(project, "token", "create", "--name", "reader", "--scope", `d1:${name}:read`);
  const as = (...args) => project.wranglerWith({ CLOUDFLARE_API_TOKEN: value }, ...args);
  const read = exited(await as("d1", "execute", name, "--remote", "--json", "--command", "SELECT 7 AS n"), 0);
  assert.deepEqual(JSON.parse(read.stdout)[0].results, [{ n: 7 }]);
  const write = exited(await as("d1", "execute", name, "--remote", "--json", "--command", "CREATE TABLE t (a)"), 1);
  assert.equal(JSON.parse(write.stdout).error.code, 9109);
  const stranger = exited(await as("d1", "execute", other.uuid, "--remote", "--json", "--command", "SELECT * FROM t"), 1);
  assert.ok(!stranger.stdout.includes("results"), stranger.stdout);
  const [{ results }] = await server.query((await server.result("GET", `/${name}`)).uuid, "SELECT count(*) AS n FROM sqlite_master");
  assert.deepEqual(results, [{ n: 0 }], "nothing was written");

  exited(await hearth(project, "token", "revoke", id), 0);
  const revoked = exited(await as("d1", "list"), 1);
  says(revoked, "[code: 10000]", "stderr");
  for (const run of project.runs) assert.ok(!(run.stdout + run.stderr).includes(value), "wrangler printed the token");
}

/** What `hearth env` prints is all that wrangler needs. */
async function environment({ project }) {
  const { name } = await freshDatabase(server, "cli-env");
  const printed = exited(await hearth(project, "env"), 0).stdout;
  const given = Object.fromEntries([...printed.matchAll(/^export (\w+)=(.*)$/gm)].map(([, key, value]) => [key, value]));
  assert.deepEqual(given, {
    CLOUDFLARE_API_BASE_URL: server.api,
    CLOUDFLARE_BASE_URL: server.api,
    CLOUDFLARE_API_TOKEN: server.key,
    CLOUDFLARE_ACCOUNT_ID: server.account,
    HEARTH_URL: server.url,
    HEARTH_KEY: server.key,
  });
  const bare = Object.fromEntries(Object.keys(given).filter((key) => key.startsWith("CLOUDFLARE_")).map((key) => [key, ""]));
  const run = exited(await project.wranglerWith({ ...bare, ...given }, "d1", "execute", name, "--remote", "--json", "--command", "SELECT 'env' AS by"), 0);
  assert.deepEqual(JSON.parse(run.stdout)[0].results, [{ by: "env" }]);
  const wrong = exited(await hearthWith({ HEARTH_KEY: "not-the-key-of-this-server" }, project, "d1", "list"), 1);
  says(wrong, "[code: 10000]", "stderr");
  const gone = exited(await hearthWith({ HEARTH_URL: "http://127.0.0.1:9" }, project, "d1", "list"), 1);
  says(gone, "http://127.0.0.1:9", "stderr");
}

const report = await runCases({
  part: "cli",
  target: server,
  wrangler: option("wrangler", "latest"),
  cases: [
    { name: "life of a database", body: life, alone: true },
    { name: "rows", body: rows },
    { name: "dumps", body: dumps },
    { name: "migrations", body: migrations },
    { name: "tokens", body: tokens },
    { name: "environment", body: environment },
  ],
  snapshots: false,
});
await finish(report, server);
