// Runs every part against one server, one after another, and sums up.
//
//   HEARTH_URL=… HEARTH_KEY=… HEARTH_BIN=… node all.mjs [--parts sdk,wrangler] [--wranglers 4.86,4.103,latest]
//   HEARTH_BIN=target/release/hearth node all.mjs …      starts the server itself, on a fresh folder
//
// Ends with a line `N passed, N failed`, and with exit code 1 if anything failed or, where CI=true, was left out.

import { join } from "node:path";
import { createInterface } from "node:readline";
import { start } from "./lib/children.mjs";
import { HERE, WRANGLERS } from "./lib/paths.mjs";
import { option } from "./lib/suite.mjs";
import { target } from "./lib/target.mjs";

/** Parts that need the program itself, as they start servers of their own or run its commands. */
const OF_THE_PROGRAM = ["hostile", "crash", "cli"];
/** This one waits, on a server of its own, for the server's patience to end: the others run meanwhile. */
const BESIDE = "hostile";
/** What the seed document was measured with. */
const SEED_WRANGLER = "4.103";

const parts = option("parts", "hostile,sdk,worker,crash,cli,wrangler,seed").split(",");
const wranglers = option("wranglers", Object.keys(WRANGLERS).join(",")).split(",");
const began = Date.now();
const sums = [];
let passed = 0;
let failed = 0;

const server = await target();
const env = { ...process.env, WORKDIR: server.workdir, HEARTH_URL: server.url, HEARTH_KEY: server.key, HEARTH_ACCOUNT: server.account };
const runs = parts.flatMap(commands).filter(canRun);
const beside = runs.filter(([part]) => part === BESIDE).map((command) => begin(command, (line, lines) => lines.push(line)));
for (const command of runs.filter(([part]) => part !== BESIDE)) {
  console.log(`\n== ${label(command)} (at ${seconds(began)})`);
  add(await begin(command, (line) => console.log(line)));
}
for (const part of await Promise.all(beside)) {
  console.log(`\n== ${part.label} (from the start)\n${part.lines.join("\n")}`);
  add(part);
}
try {
  await server.close();
} catch (e) {
  console.log(`not ok ${e.message}`);
  failed += 1;
}
console.log(`\n${sums.join("\n")}\nall of it in ${seconds(began)}\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

/** The command lines of a part. */
function commands(part) {
  if (part === "wrangler") return wranglers.map((version) => [part, "--wrangler", version]);
  if (part === "seed") return wranglers.map((version) => [part, "--wrangler", version, ...(version === SEED_WRANGLER ? [] : ["--brief"])]);
  return [[part]];
}

/** Whether a part can run here. One that cannot is named, and is a failure where CI=true. */
function canRun(command) {
  if (!OF_THE_PROGRAM.includes(command[0]) || process.env.HEARTH_BIN) return true;
  sums.push(`${label(command).padEnd(20)} LEFT OUT, as HEARTH_BIN is not set`);
  console.log(sums.at(-1));
  if (process.env.CI === "true") failed += 1;
  return false;
}

function label([part, ...args]) {
  return [part, ...args.filter((word) => word !== "--wrangler")].join(" ");
}

/** Runs one part. `each` gets its lines but for its sums. */
async function begin([part, ...args], each) {
  const start_ms = Date.now();
  const child = start(process.execPath, [join(HERE, `${part}.mjs`), ...args], { env, stdio: ["ignore", "pipe", "inherit"], hurried_ms: 4_000 });
  const ended = new Promise((done) => child.on("close", (code, by) => done(code ?? by)));
  const lines = [];
  let sum;
  for await (const line of createInterface({ input: child.stdout })) {
    const found = line.match(/^(\d+) passed, (\d+) failed$/);
    if (found) sum = { passed: Number(found[1]), failed: Number(found[2]) };
    else each(line, lines);
  }
  return { label: label([part, ...args]), lines, sum, code: await ended, took: seconds(start_ms) };
}

/** Adds a part's figures to the sums. One that ended badly without saying what failed is a failure more. */
function add({ label, sum, code, took }) {
  const broken = !sum || (code !== 0 && sum.failed === 0);
  passed += sum?.passed ?? 0;
  failed += (sum?.failed ?? 0) + (broken ? 1 : 0);
  const figures = sum ? `${sum.passed} passed, ${sum.failed} failed` : "ended before its sums";
  sums.push(`${label.padEnd(20)} ${figures}${broken ? `, exit code ${code}` : ""} (${took})`);
}

function seconds(since) {
  return `${Math.round((Date.now() - since) / 1000)} s`;
}
