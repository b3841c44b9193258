// A fresh project folder, and real wrangler run in it.

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { signal, start } from "./children.mjs";
import { wrangler } from "./paths.mjs";

const RUN_MS_MAX = 180_000;

export class Project {
  /** `name`: the wrangler's short name, as in `paths.mjs`. */
  constructor(target, name) {
    this.target = target;
    this.program = wrangler(name);
    this.dir = mkdtempSync(join(target.workdir, `project-${name}-`));
    this.home = join(this.dir, ".home");
    mkdirSync(this.home);
    /** Every run so far: what the snapshot is made of. */
    this.runs = [];
    this.config();
  }

  /** Writes wrangler.jsonc. `databases`: `{database_name, database_id?, migrations_dir?}`, bound as DB, DB2, … */
  config(...databases) {
    const d1_databases = databases.map((one, k) => ({ binding: k === 0 ? "DB" : `DB${k + 1}`, ...one }));
    const text = { name: "conformance", compatibility_date: "2026-04-01", d1_databases };
    this.write("wrangler.jsonc", `${JSON.stringify(text, null, 2)}\n`);
  }

  write(path, text) {
    const file = join(this.dir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return path;
  }

  read(path) {
    return readFileSync(join(this.dir, path), "utf8");
  }

  list(path) {
    return readdirSync(join(this.dir, path)).sort();
  }

  /** The environment of a run: nothing of the caller's leaks into it. */
  env(more) {
    return {
      PATH: process.env.PATH,
      HOME: this.home,
      XDG_CONFIG_HOME: join(this.home, ".config"),
      TMPDIR: this.home,
      TZ: "UTC",
      LANG: "C.UTF-8",
      CI: "1",
      NO_COLOR: "1",
      FORCE_COLOR: "0",
      NODE_NO_WARNINGS: "1",
      // Node 22 keeps compiled code there; older ones ignore it. It saves a third of wrangler's start.
      NODE_COMPILE_CACHE: join(this.target.workdir, "compile-cache"),
      CLOUDFLARE_API_BASE_URL: this.target.api,
      CLOUDFLARE_API_TOKEN: this.target.key,
      CLOUDFLARE_ACCOUNT_ID: this.target.account,
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_SEND_ERROR_REPORTS: "false",
      WRANGLER_HIDE_BANNER: "true",
      ...more,
    };
  }

  /** Runs `wrangler ARGS` to its end: `{args, code, stdout, stderr}`. Never throws for a failing command. */
  async wrangler(...args) {
    return this.wranglerWith({}, ...args);
  }

  async wranglerWith(env, ...args) {
    const options = { cwd: this.dir, env: this.env(env) };
    return this.record(args, await runToEnd(this.program.node, [this.program.script, ...args], options));
  }

  /** Puts a run into the transcript. */
  record(args, { code, stdout, stderr }, program = "wrangler") {
    const run = { program, args, code, stdout, stderr };
    this.runs.push(run);
    return run;
  }

  /** `d1 ARGS` that must succeed. */
  async d1(...args) {
    const run = await this.wrangler("d1", ...args);
    if (run.code !== 0) throw new Error(`wrangler d1 ${args.join(" ")} exited ${run.code}\n${run.stdout}${run.stderr}`);
    return run;
  }

  /** `d1 execute DB --remote --json --command SQL` that must succeed: the parsed result array. */
  async sql(db, sql) {
    const run = await this.d1("execute", db, "--remote", "--json", "--command", sql);
    return JSON.parse(run.stdout);
  }
}

/** Runs a program to its end, or for as long as a run may take: `{code, stdout, stderr}`. */
export async function runToEnd(program, args, options) {
  const child = start(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const timer = setTimeout(() => signal(child, "SIGKILL"), RUN_MS_MAX);
  const [stdout, stderr, code] = await Promise.all([
    collect(child.stdout),
    collect(child.stderr),
    new Promise((done, broken) => {
      child.on("error", broken);
      child.on("close", (status, by) => done(status ?? `killed by ${by}`));
    }),
  ]);
  clearTimeout(timer);
  return { code, stdout, stderr };
}

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
