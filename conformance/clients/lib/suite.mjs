// A suite of named cases on one wrangler: runs each in its own project, then holds its output against the snapshot.

import assert from "node:assert/strict";
import { Project } from "./project.mjs";
import { Report } from "./report.mjs";
import { matchSnapshot, transcript } from "./snapshot.mjs";

/** The part after `--wrangler`, or all of them. */
export function option(name, fallback) {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? fallback : process.argv[at + 1];
}

/**
 * Runs `cases`, each `[name, async (context) => {}]` with context `{target, project, wrangler}`.
 *
 * The facts are asserted by the case itself; the snapshot is a second check on everything printed, and cannot make a
 * case pass. `--only TEXT` runs the cases whose name holds TEXT.
 */
export async function runCases({ part, target, wrangler, cases, snapshots = true }) {
  const report = new Report(`${part} ${wrangler}`);
  const only = option("only", "");
  for (const [name, body] of cases) {
    if (!name.includes(only)) continue;
    const project = new Project(target, wrangler);
    const passed = await report.test(name, () => body({ target, project, wrangler }));
    if (!snapshots || project.runs.length === 0) continue;
    if (!passed && process.env.UPDATE === "1") continue;
    await report.test(`${name} (snapshot)`, () =>
      matchSnapshot(`${project.program.version}/${name.replaceAll(" ", "-")}.txt`, transcript(project.runs, { target, project })),
    );
  }
  report.finish();
  return report;
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
