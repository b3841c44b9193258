// Runs SQL through the D1 that Miniflare ships, and prints what it answered.
//
//   node oracle.mjs < requests.jsonl > answers.jsonl
//   node oracle.mjs requests.jsonl
//
// One request a line:
//   {"sql":"SELECT ?1","params":[1]}                    -> all()
//   {"op":"run","sql":...,"params":[...]}               -> all | run | first | raw | exec
//   {"op":"first","sql":...,"column":"a"}
//   {"op":"raw","sql":...,"columnNames":true}
//   {"op":"batch","batch":[{"sql":...,"params":[...]}, ...]}
//   {"op":"session","first":"first-primary","sql":...}               -> all() and getBookmark() before and after
// `"db":"name"` chooses a database; the default is "main". A fresh store is used on every start.
// Values JSON has no form for are written {"$blob":[1,2]}, {"$blob":{"size":N}}, {"$number":"Infinity"},
// {"$bigint":"9"}, {"$undefined":true}, {"$repeat":["x",1000]}, {"$join":["SELECT ", {"$repeat":["1,",9]}, "1"]}.
// The same forms are understood in "sql".
//
// One answer a line, in the order asked: {"sql":...,"ok":<result>} or {"sql":...,"error":...,"cause":...}.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { HERE, node22 } from "./lib/paths.mjs";

const self = fileURLToPath(import.meta.url);

if (Number(process.versions.node.split(".")[0]) < 22) {
  const again = spawnSync(node22(), [self, ...process.argv.slice(2)], { stdio: "inherit" });
  process.exit(again.status ?? 1);
}

const load = createRequire(join(HERE, "node_modules/wrangler-latest/package.json"));
const { Miniflare, convertV4MiniflareOptions } = load("miniflare");

const SCRIPT = readFileSync(join(HERE, "worker/oracle-worker.js"), "utf8");
const DATABASES = ["main", "second"];

const text = process.argv[2] ? readFileSync(process.argv[2], "utf8") : readFileSync(0, "utf8");
const requests = text
  .split("\n")
  .map((line) => line.trim())
  .filter((line) => line && !line.startsWith("//"))
  .map((line) => JSON.parse(line));

const persist = mkdtempSync(join(tmpdir(), "hearth-oracle-"));
const options = convertV4MiniflareOptions({
  cf: false,
  modules: true,
  script: SCRIPT,
  compatibilityDate: "2026-08-01",
  d1Databases: Object.fromEntries(DATABASES.map((name) => [name, name])),
  d1Persist: persist,
});
const mf = new Miniflare(options);

let failed = false;
try {
  await mf.ready;
  for (const request of requests) {
    const reply = await mf.dispatchFetch("http://oracle/", {
      method: "POST",
      body: JSON.stringify(request),
    });
    const answer = await reply.text();
    try {
      console.log(JSON.stringify({ ...label(request), ...JSON.parse(answer) }));
    } catch {
      failed = true;
      console.log(JSON.stringify({ ...label(request), broken: answer.slice(0, 400) }));
    }
  }
} finally {
  await mf.dispose();
  rmSync(persist, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

function label(request) {
  const { op, sql, params, batch, column } = request;
  const out = { op, sql, params, batch, column };
  if (typeof sql === "string" && sql.length > 300) out.sql = `${sql.slice(0, 60)}… (${sql.length})`;
  return out;
}
