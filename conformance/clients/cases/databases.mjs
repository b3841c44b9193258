// wrangler d1 create, list, info, insights, delete, time-travel; whoami; what is printed for a database that is not there.

import assert from "node:assert/strict";
import { PREFIX, freshDatabase } from "../lib/names.mjs";
import { exited, failsWith, plain, says } from "../lib/suite.mjs";

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

/** What each wrangler prints when a name leads to no database. */
export function notFound(wrangler, name) {
  return wrangler === "4.86"
    ? `Couldn't find DB with name '${name}'`
    : `Couldn't find a D1 DB with name or binding '${name}' in your config or the API. Run 'wrangler d1 create ${name}' to create it.`;
}

async function create({ target, project }) {
  const name = `${PREFIX}create`;
  await target.remove(name);
  const run = exited(await project.wrangler("d1", "create", name), 0);
  says(run, `✅ Successfully created DB '${name}'`);
  const [printed] = plain(run.stdout).match(UUID) ?? assert.fail(`no database_id in\n${run.stdout}`);
  const found = await target.result("GET", `/${name}`);
  assert.equal(found.uuid, printed, "the id printed is the id stored");
  assert.equal((await target.result("GET", `/${printed}`)).name, name);
}

async function createWithLocation({ target, project }) {
  const name = `${PREFIX}located`;
  await target.remove(name);
  const run = exited(await project.wrangler("d1", "create", name, "--location", "weur"), 0);
  says(run, `✅ Successfully created DB '${name}'`);
  assert.equal((await target.databases(name)).length, 1);
}

async function createDuplicate({ target, project }) {
  const { name } = await freshDatabase(target, "duplicate");
  failsWith(await project.wrangler("d1", "create", name), "A database with that name already exists");
  const reply = await target.call("POST", "", { name });
  assert.equal(reply.body.success, false);
  assert.equal(reply.body.errors[0].code, 7502);
  assert.equal(reply.body.result, null);
  assert.equal((await target.databases(name)).length, 1, "no second database was made");
}

async function list({ target, project }) {
  const made = [];
  for (let k = 1; k <= 12; k++) made.push(await freshDatabase(target, `list-${String(k).padStart(2, "0")}`));
  const text = exited(await project.wrangler("d1", "list"), 0);
  for (const { name, uuid } of made) {
    const row = plain(text.stdout).split("\n").find((line) => line.includes(` ${name} `));
    assert.ok(row?.includes(uuid), `no row of ${name} with its id in\n${text.stdout}`);
  }
  text.stdout = ownRows(text.stdout);

  const json = exited(await project.wrangler("d1", "list", "--json"), 0);
  const rows = JSON.parse(json.stdout);
  assert.equal(new Set(rows.map((row) => row.uuid)).size, rows.length, "no database is listed twice");
  const own = rows.filter((row) => row.name.startsWith(`${PREFIX}list-`));
  assert.deepEqual(new Set(own.map((row) => row.uuid)), new Set(made.map((one) => one.uuid)));
  for (const row of own) {
    assert.equal(row.version, "production");
    assert.ok(!Number.isNaN(Date.parse(row.created_at)), `created_at is a time: ${row.created_at}`);
  }
  json.stdout = JSON.stringify(own, null, 2);

  // The last one made stands on the second page of ten: 4.86 finds names by walking the pages.
  const last = made.at(-1).name;
  assert.deepEqual((await project.sql(last, "SELECT 1 AS one"))[0].results, [{ one: 1 }]);
  project.runs.pop();
  for (const { uuid } of made) await target.result("DELETE", `/${uuid}`);
}

/** The rows of this suite in the table that `d1 list` prints, so that other databases do not matter. */
function ownRows(table) {
  const lines = plain(table).split("\n");
  const header = lines.findIndex((line) => line.startsWith("┌"));
  const columns = (line) => line.split("│").map((cell) => cell.trim()).filter(Boolean).join(" | ");
  return [columns(lines[header + 1]), ...lines.filter((line) => line.includes(`${PREFIX}list-`)).map(columns)].join("\n");
}

async function info({ target, project }) {
  const made = await freshDatabase(target, "info");
  await target.query(made.uuid, "CREATE TABLE a(id INTEGER PRIMARY KEY, x); INSERT INTO a(x) VALUES (1), (2); SELECT * FROM a");
  const text = exited(await project.wrangler("d1", "info", made.name), 0);
  for (const field of [made.uuid, "created_at", "running_in_region", "database_size", "read_queries_24h", "rows_written_24h", "read_replication.mode"]) {
    says(text, field);
  }
  const json = exited(await project.wrangler("d1", "info", made.name, "--json"), 0);
  const printed = JSON.parse(json.stdout);
  assert.equal(printed.uuid, made.uuid);
  assert.equal(printed.name, made.name);
  assert.equal(printed.num_tables, 1);
  assert.ok(printed.database_size >= 8192, `database_size ${printed.database_size}`);
  assert.equal("file_size" in printed, false, "wrangler renames file_size");
  assert.equal("version" in printed, false);
  assert.ok(["auto", "disabled"].includes(printed.read_replication.mode));
  for (const field of ["read_queries_24h", "write_queries_24h", "rows_read_24h", "rows_written_24h"]) {
    assert.ok(Number.isInteger(printed[field]) && printed[field] >= 0, `${field}: ${printed[field]}`);
  }
}

/** The server answers the question, and keeps no figures of single queries yet: the list is empty. */
async function insights({ target, project }) {
  const made = await freshDatabase(target, "insights");
  await target.query(made.uuid, "CREATE TABLE a(id INTEGER PRIMARY KEY, x)");
  for (let k = 0; k < 3; k++) await target.query(made.uuid, "SELECT x FROM a WHERE id = 1");
  const run = exited(
    await project.wrangler("d1", "insights", made.name, "--time-period", "1h", "--sort-by", "count", "--sort-type", "sum", "--limit", "5"),
    0,
  );
  assert.deepEqual(JSON.parse(plain(run.stdout).slice(plain(run.stdout).indexOf("["))), []);
}

async function remove({ target, project, wrangler }) {
  const { name, uuid } = await freshDatabase(target, "delete");
  says(exited(await project.wrangler("d1", "delete", name, "-y"), 0), `Deleted '${name}' successfully.`);
  assert.equal((await target.call("GET", `/${uuid}`)).status, 404);
  failsWith(await project.wrangler("d1", "info", name), notFound(wrangler, name));
  assert.equal((await target.create(name)).name, name, "the name is free again");
}

async function unknown({ target, project, wrangler }) {
  const name = `${PREFIX}nowhere`;
  assert.equal((await target.call("GET", `/${name}`)).status, 404);
  const line = notFound(wrangler, name);
  failsWith(await project.wrangler("d1", "info", name), line);
  failsWith(await project.wrangler("d1", "execute", name, "--remote", "--command", "SELECT 1"), line);
  failsWith(await project.wrangler("d1", "export", name, "--remote", "--output", "never.sql"), line);
  failsWith(await project.wrangler("d1", "delete", name, "-y"), line);
  const json = exited(await project.wrangler("d1", "execute", name, "--remote", "--json", "--command", "SELECT 1"), 1);
  assert.deepEqual(JSON.parse(json.stdout), { error: { text: line } });
}

async function whoami({ target, project }) {
  const run = exited(await project.wrangler("whoami"), 0);
  says(run, "👋 You are logged in with an");
  says(run, target.account);
}

async function accountFound({ target, project }) {
  const { name } = await freshDatabase(target, "account");
  const run = exited(await project.wranglerWith({ CLOUDFLARE_ACCOUNT_ID: "" }, "d1", "info", name, "--json"), 0);
  assert.equal(JSON.parse(run.stdout.slice(run.stdout.indexOf("{"))).name, name);
}

async function wrongToken({ target, project }) {
  const reply = await target.call("GET", "", undefined, { authorization: "Bearer not-the-key" });
  assert.equal(reply.status, 401);
  assert.equal(reply.body.success, false);
  const [{ code, message }] = reply.body.errors;
  assert.equal(code, 10000);
  const run = await project.wranglerWith({ CLOUDFLARE_API_TOKEN: "not-the-key" }, "d1", "list");
  failsWith(run, `${message} [code: 10000]`);
  assert.ok(!(run.stdout + run.stderr).includes(target.key), "the owner key is not printed");
}

async function keyAndEmail({ target, project }) {
  const env = { CLOUDFLARE_API_TOKEN: "", CLOUDFLARE_API_KEY: target.key, CLOUDFLARE_EMAIL: "owner@example.com" };
  const { name } = await freshDatabase(target, "x-auth");
  const run = exited(await project.wranglerWith(env, "d1", "execute", name, "--remote", "--json", "--command", "SELECT 7 AS n"), 0);
  assert.deepEqual(JSON.parse(run.stdout)[0].results, [{ n: 7 }]);
}

/** Until Time Travel is built the server says so with a code; wrangler prints it. */
async function timeTravel({ target, project }) {
  const { name, uuid } = await freshDatabase(target, "time-travel");
  const reply = await target.call("GET", `/${uuid}/time_travel/bookmark`);
  assert.equal(reply.status, 501);
  const [{ code, message }] = reply.body.errors;
  assert.ok(Number.isInteger(code) && code !== 10000, `code ${code}`);
  failsWith(await project.wrangler("d1", "time-travel", "info", name), `${message} [code: ${code}]`);
  failsWith(await project.wrangler("d1", "time-travel", "restore", name, "--timestamp", new Date(Date.now() - 60_000).toISOString()), `${message} [code: ${code}]`);
  project.runs.at(-1).args.splice(-1, 1, "<time>");
}

export default [
  { name: "create", body: create },
  { name: "create with location", body: createWithLocation },
  { name: "create duplicate", body: createDuplicate },
  { name: "list", body: list, alone: true },
  { name: "info", body: info },
  { name: "insights", body: insights },
  { name: "delete", body: remove, alone: true },
  { name: "unknown database", body: unknown },
  { name: "whoami", body: whoami },
  { name: "account not given", body: accountFound },
  { name: "wrong token", body: wrongToken },
  { name: "key and email", body: keyAndEmail },
  { name: "time travel not there", body: timeTravel },
];
