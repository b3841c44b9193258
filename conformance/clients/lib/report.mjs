// Prints `ok NAME` and `not ok NAME` with what differed, then the sums.

import { AssertionError } from "node:assert";
import { PREFIX } from "./names.mjs";

export class Report {
  constructor(part) {
    this.part = part;
    this.passed = 0;
    this.failed = [];
  }

  ok(name) {
    this.passed += 1;
    console.log(`ok ${this.part} ${name}`);
  }

  notOk(name, detail = "") {
    this.failed.push(name);
    console.log(`not ok ${this.part} ${name}`);
    for (const line of String(detail).split("\n")) if (line !== "") console.log(`  ${line}`);
  }

  /** Runs one check. Whatever it throws is its failure; gives whether it passed. */
  async test(name, body) {
    try {
      await body();
      this.ok(name);
      return true;
    } catch (e) {
      this.notOk(name, e instanceof AssertionError ? e.message : (e?.stack ?? e));
      return false;
    }
  }

  /** Prints the last line and sets the exit code. */
  finish() {
    console.log(`${this.passed} passed, ${this.failed.length} failed`);
    process.exitCode = this.failed.length === 0 && this.passed > 0 ? 0 : 1;
  }
}

/** Ends a part: deletes its databases, stops a server of its own, prints the sums. */
export async function finish(report, server) {
  await report.test("cleared", () => server.clear(PREFIX));
  if (server.server) await report.test("the server ends well", () => server.close());
  report.finish();
}

/** The lines of two texts that differ, as a unified diff without context beyond two lines. */
export function diff(expected, actual) {
  const a = expected.split("\n");
  const b = actual.split("\n");
  const common = lengths(a, b);
  const out = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push(`  ${a[i]}`);
      i++;
      j++;
    } else if (j < b.length && (i === a.length || common[i][j + 1] >= common[i + 1][j])) {
      out.push(`+ ${b[j++]}`);
    } else {
      out.push(`- ${a[i++]}`);
    }
  }
  const near = (k) => out.slice(Math.max(0, k - 2), k + 3).some((line) => !line.startsWith("  "));
  const shown = out.filter((_, k) => near(k));
  return shown.slice(0, 120).join("\n");
}

/** Longest common subsequence of the tails, for `diff`. */
function lengths(a, b) {
  const table = Array.from({ length: a.length + 1 }, () => new Int32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}
