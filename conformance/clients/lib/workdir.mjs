// The folder for all that a run writes. It holds keys, so it is removed at the end unless something failed.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import "./children.mjs"; // ends the children before the folder goes

/** WORKDIR, or a new folder that goes when this process ends well or is ended. */
export function workFolder() {
  const given = process.env.WORKDIR;
  if (given) {
    mkdirSync(given, { recursive: true, mode: 0o700 });
    return given;
  }
  const made = mkdtempSync(join(tmpdir(), "hearth-clients-"));
  process.on("exit", (code) => {
    if (code === 1) console.error(`kept ${made}`);
    else rmSync(made, { recursive: true, force: true });
  });
  return made;
}
