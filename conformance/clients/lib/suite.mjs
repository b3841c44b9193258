// A suite of named cases on one wrangler: runs each in its own project, then holds its output against the snapshot.

import assert from "node:assert/strict";
import { Project } from "./project.mjs";
import { Report } from "./report.mjs";
import { matchSnapshot, staleSnapshots, transcript } from "./snapshot.mjs";

/** Cases that run at once. A wrangler spends half of its time waiting, on the disk above all. */
const JOBS = 2;

/** The word after `--name` on the command line, or `fallback`. */
export function option(name, fallback) {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? fallback : process.argv[at + 1];
}

/**
 * Runs `cases`, each `{name, body, alone?}` with `body({target, project, wrangler})`, two at a time.
 *
 * A case that lists, or that deletes what another wrangler might be listing, is `alone`: those run first, one by one.
 * The facts are asserted by the case itself; the snapshot is a second check on everything printed, and cannot make a
 * case pass. `--only TEXT` runs the cases whose name holds TEXT.
 */
export async function runCases({ part, target, wrangler, cases, snapshots = true }) {
  const report = new Report(`${part} ${wrangler}`);
  const only = option("only", "");
  const chosen = cases.filter(({ name }) => name.includes(only));
  const run = (one) => runCase({ ...one, report, target, wrangler, snapshots });

  for (const one of chosen.filter(({ alone }) => alone)) await run(one);
  const rest = chosen.filter(({ alone }) => !alone);
  const worker = async () => {
    for (let one = rest.shift(); one; one = rest.shift()) await run(one);
  };
  await Promise.all(Array.from({ length: JOBS }, worker));

  if (snapshots && only === "") {
    const folder = new Project(target, wrangler).program.version;
    const stale = staleSnapshots(folder, cases.map(({ name }) => fileName(name)));
    await report.test("every snapshot belongs to a case", () => assert.deepEqual(stale, []));
  }
  return report;
}

async function runCase({ name, body, report, target, wrangler, snapshots }) {
  const project = new Project(target, wrangler);
  const passed = await report.test(name, () => body({ target, project, wrangler }));
  if (!snapshots || project.runs.length === 0) return;
  // What a failing case printed is not to be kept.
  if (!passed && process.env.UPDATE === "1") return;
  await report.test(`${name} (snapshot)`, () =>
    matchSnapshot(`${project.program.version}/${fileName(name)}`, transcript(project.runs, { target, project })),
  );
}

function fileName(name) {
  return `${name.replaceAll(" ", "-")}.txt`;
}

/** Asserts the exit code, showing all that was printed if it is another. */
export function exited(run, code) {
  assert.equal(run.code, code, `exit code ${run.code}, expected ${code}\n--- stdout\n${run.stdout}\n--- stderr\n${run.stderr}`);
  return run;
}

/** Asserts that `text` was printed, on the stream named. */
export function says(run, text, stream = "stdout") {
  assert.ok(plain(run[stream]).includes(text), `${stream} lacks ${JSON.stringify(text)}:\n${run.stdout}\n${run.stderr}`);
  return run;
}

/** Without the terminal's control sequences. */
export function plain(text) {
  return text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "");
}

/** Asserts a failure with exactly this line in the error output. */
export function failsWith(run, line) {
  exited(run, 1);
  const lines = plain(run.stderr + run.stdout).split("\n").map((one) => one.trim().replace(/^✘ \[ERROR\] /, ""));
  assert.ok(lines.includes(line), `no line ${JSON.stringify(line)}:\n--- stdout\n${run.stdout}\n--- stderr\n${run.stderr}`);
  return run;
}
