// What a run printed, with everything that changes from run to run replaced, compared with a stored file.
// UPDATE=1 writes the file instead.

import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { HERE } from "./paths.mjs";
import { diff } from "./report.mjs";

const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;
const BOOKMARK = /\b[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}\b/g;

/** Replaces ids, addresses, paths, times and durations in what a client printed. */
export function scrub(text, { target, project }) {
  let out = text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").replace(/\r/g, "");
  for (const dir of project ? [project.dir] : []) out = out.replaceAll(dir, "<project>");
  out = out
    .replaceAll(HERE, "<clients>")
    .replaceAll(target.url, "<server>")
    .replaceAll(target.account, "<account>")
    .replaceAll(target.key, "<key>")
    .replace(/https?:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?/g, "<server>")
    .replace(BOOKMARK, "<bookmark>")
    .replace(UUID, "<uuid>")
    .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>")
    .replace(/\b\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d+)?Z/g, "<time>")
    .replace(/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\b/g, "<time>")
    .replace(/("(?:sql_duration_ms|duration|avgDurationMs|totalDurationMs)": )[\d.e+-]+/g, "$1<ms>")
    .replace(/("served_by": "hearth-)[^"]*"/g, '$1<version>"')
    .replace(/\bin \d+(\.\d+)? ?ms\b/g, "in <ms>")
    .replace(/("(?:finalBookmark|bookmark)": )"[^"]*"/g, '$1"<bookmark>"')
    .replace(/(valid for one hour: )\S+/g, "$1<signed url>")
    .replace(/Uploading \S+\.sql/g, "Uploading <upload>.sql");
  const lines = out.split("\n").filter((line) => !line.startsWith("🪵") && !/^\s+at \S/.test(line));
  return lines
    .map((line) => line.trimEnd())
    .join("\n")
    .replace(/\n{3,}/g, "\n\n");
}

/** The transcript of some runs, scrubbed. */
export function transcript(runs, context) {
  const parts = runs.map(({ program, args, code, stdout, stderr }) => {
    const command = args.map((arg) => (/^[\w.,:=/-]+$/.test(arg) ? arg : JSON.stringify(arg))).join(" ");
    const streams = [`$ ${program} ${command}`, ...(code === undefined ? [] : [`exit ${code}`])];
    if (stdout.trim()) streams.push("--- stdout", trimmed(stdout));
    if (stderr.trim()) streams.push("--- stderr", trimmed(stderr));
    return streams.join("\n");
  });
  return `${scrub(parts.join("\n\n"), context).trimEnd()}\n`;
}

function trimmed(text) {
  return text.replace(/^\n+|\s+$/g, "");
}

/** Throws with the differences if `text` is not what `snapshots/<path>` holds. */
export function matchSnapshot(path, text) {
  const file = join(HERE, "snapshots", path);
  if (process.env.UPDATE === "1") {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return;
  }
  if (!existsSync(file)) throw new SnapshotFailure(`no snapshot snapshots/${path}: run with UPDATE=1 and read what it writes`);
  const stored = readFileSync(file, "utf8");
  if (stored !== text) {
    throw new SnapshotFailure(`differs from snapshots/${path} (- stored, + printed)\n${diff(stored, text)}`);
  }
}

/** Files of a folder of snapshots that are not among `names`; with UPDATE=1 they are removed. */
export function staleSnapshots(folder, names) {
  const dir = join(HERE, "snapshots", folder);
  const stale = existsSync(dir) ? readdirSync(dir).filter((name) => !names.includes(name)) : [];
  if (process.env.UPDATE !== "1") return stale;
  for (const name of stale) rmSync(join(dir, name));
  return [];
}

class SnapshotFailure extends Error {
  constructor(message) {
    super(message);
    this.stack = message; // where it was thrown is of no use to the reader
  }
}
