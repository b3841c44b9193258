// The reference engine: the D1 that Miniflare ships, one fresh database for each case of the corpus.
//
// Speaks lines of JSON on stdin and stdout, one answer for one request:
//   {"fresh":true}                                   -> {"ok":true}           the next database
//   {"items":[{"sql":"SELECT ?","params":[1]},…]}    -> {"ok":[{results,meta},…]} or {"error":"text"}
// `src/backend/reference.rs` starts it. Ends when stdin closes.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { MODULES, node22 } from "./clients/lib/paths.mjs";

const DATABASES_MAX = 1_000;

const SCRIPT = `
export default {
  async fetch(request, env) {
    const { db, items } = await request.json();
    try {
      const prepare = ({ sql, params }) => params.length ? env[db].prepare(sql).bind(...params) : env[db].prepare(sql);
      const ok = items.length === 1 ? [await prepare(items[0]).all()] : await env[db].batch(items.map(prepare));
      return Response.json({ ok });
    } catch (e) {
      return Response.json({ error: String(e?.message ?? e) });
    }
  },
};`;

if (Number(process.versions.node.split(".")[0]) < 22) {
  const again = spawn(node22(), [fileURLToPath(import.meta.url)], { stdio: "inherit" });
  again.on("exit", (code) => process.exit(code ?? 1));
} else {
  await serve();
}

async function serve() {
  const load = createRequire(join(MODULES, "wrangler-latest/package.json"));
  const { Miniflare, convertV4MiniflareOptions } = load("miniflare");
  const persist = mkdtempSync(join(tmpdir(), "hearth-reference-"));
  const names = Array.from({ length: DATABASES_MAX }, (_, n) => `db${n}`);
  const mf = new Miniflare(
    convertV4MiniflareOptions({
      cf: false,
      modules: true,
      script: SCRIPT,
      compatibilityDate: "2026-08-01",
      d1Databases: Object.fromEntries(names.map((name) => [name, name])),
      d1Persist: persist,
    }),
  );
  let used = -1;
  try {
    await mf.ready;
    for await (const line of createInterface({ input: process.stdin })) {
      const request = JSON.parse(line);
      if (request.fresh) {
        used += 1;
        console.log(JSON.stringify(used < names.length ? { ok: true } : { error: `only ${DATABASES_MAX} databases were made` }));
        continue;
      }
      const reply = await mf.dispatchFetch("http://reference/", {
        method: "POST",
        body: JSON.stringify({ db: names[used], items: request.items }),
      });
      console.log((await reply.text()).replaceAll("\n", " "));
    }
  } finally {
    await mf.dispose();
    rmSync(persist, { recursive: true, force: true });
  }
}
