// Runs every part against one server and sums up.
//
//   HEARTH_URL=… HEARTH_KEY=… node all.mjs [--parts wrangler,seed,sdk,worker] [--wranglers 4.86,4.103,latest]
//   HEARTH_BIN=target/release/hearth node all.mjs …      starts the server itself, on a fresh folder
//
// Exit code 1 if anything failed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HERE, WRANGLERS } from "./lib/paths.mjs";
import { serve } from "./lib/serve.mjs";
import { option } from "./lib/suite.mjs";

const parts = option("parts", "sdk,worker,wrangler,seed").split(",");
const wranglers = option("wranglers", Object.keys(WRANGLERS).join(",")).split(",");

const runs = parts.flatMap((part) =>
  part === "wrangler" || part === "seed" ? wranglers.map((version) => [part, "--wrangler", version]) : [[part]],
);

const workdir = mkdtempSync(join(process.env.WORKDIR ?? tmpdir(), "hearth-all-"));
const server = process.env.HEARTH_URL ? null : await serve(process.env.HEARTH_BIN, join(workdir, "data"));
const env = {
  ...process.env,
  WORKDIR: workdir,
  ...(server ? { HEARTH_URL: server.url, HEARTH_KEY: server.key } : {}),
};

let failed = 0;
const sums = [];
try {
  for (const [part, ...args] of runs) {
    const started = Date.now();
    const { code, last } = await run(part, args);
    const sum = last.match(/^(\d+) passed, (\d+) failed$/);
    failed += sum ? Number(sum[2]) : 1;
    if (code !== 0 && (!sum || sum[2] === "0")) failed += 1;
    const label = [part, ...args.slice(1)].join(" ");
    sums.push(`${label.padEnd(16)} ${sum ? last : `ended with ${code} before its sums`} (${Math.round((Date.now() - started) / 1000)} s)`);
  }
} finally {
  await server?.stop();
  if (failed === 0) rmSync(workdir, { recursive: true, force: true });
  else console.log(`\nkept ${workdir}`);
}
console.log(`\n${sums.join("\n")}`);
process.exitCode = failed === 0 ? 0 : 1;

/** Runs one part, passing on what it prints; gives its exit code and its last line. */
async function run(part, args) {
  const child = spawn(process.execPath, [join(HERE, `${part}.mjs`), ...args], { env, stdio: ["ignore", "pipe", "inherit"] });
  let tail = "";
  child.stdout.on("data", (chunk) => {
    process.stdout.write(chunk);
    tail = (tail + chunk).slice(-4000);
  });
  const code = await new Promise((done) => child.on("close", done));
  return { code, last: tail.trimEnd().split("\n").at(-1) ?? "" };
}
