// The measurements that the seed document prints, run with real wrangler, with the figures it prints.
//
//   HEARTH_URL=… HEARTH_KEY=… node seed.mjs --wrangler 4.86|4.103|latest [--brief] [--only TEXT]
//
// 4.103.0 made the document's figures. `--brief` runs one case of each kind, for the others.

import { PREFIX } from "./lib/names.mjs";
import { finish } from "./lib/report.mjs";
import { option, runCases } from "./lib/suite.mjs";
import { target } from "./lib/target.mjs";
import measurements from "./cases/seed-measurements.mjs";
import migrations from "./cases/seed-migrations.mjs";

const server = await target();
await server.clear(PREFIX);
const report = await runCases({
  part: "seed",
  target: server,
  wrangler: option("wrangler", "4.103"),
  cases: [...measurements, ...migrations].filter(({ brief }) => brief || !process.argv.includes("--brief")),
  snapshots: false,
});
await finish(report, server);
