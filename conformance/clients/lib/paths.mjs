// Where the pinned programs stand.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const HERE = dirname(dirname(fileURLToPath(import.meta.url)));
export const MODULES = join(HERE, "node_modules");

/** A Node 22 binary: the one running, the pinned package, or $NODE22. */
export function node22() {
  if (process.env.NODE22) return process.env.NODE22;
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const path = join(MODULES, name, "bin/node");
  if (existsSync(path)) return path;
  throw new Error(`no Node 22 here: set NODE22, or install the package ${name}`);
}

/** The wranglers, by the name given on the command line. */
export const WRANGLERS = {
  "4.86": { alias: "wrangler-4-86", version: "4.86.0", node: () => process.execPath },
  "4.103": { alias: "wrangler-4-103", version: "4.103.0", node: node22 },
  latest: { alias: "wrangler-latest", version: "4.164.0", node: node22 },
};

export function wrangler(name) {
  const known = WRANGLERS[name];
  if (!known) throw new Error(`unknown wrangler ${name}: one of ${Object.keys(WRANGLERS).join(", ")}`);
  return {
    ...known,
    name,
    node: known.node(),
    script: join(MODULES, known.alias, "bin/wrangler.js"),
  };
}

/** The stock workerd binary, out of its platform's package: `workerd/bin/workerd` is a script where no install script ran. */
export function workerd() {
  const platform = `${process.platform}-${process.arch === "x64" ? "64" : process.arch}`;
  const load = createRequire(join(MODULES, "workerd/package.json"));
  return load.resolve(`@cloudflare/workerd-${platform === "win32-64" ? "windows-64" : platform}/bin/workerd`);
}
