// The measurements that the seed document prints, run with real wrangler, with the figures it prints.
//
//   HEARTH_URL=… HEARTH_KEY=… node seed.mjs --wrangler 4.86|4.103|latest [--only TEXT]

import { PREFIX } from "./lib/names.mjs";
import { option, runCases } from "./lib/suite.mjs";
import { target } from "./lib/target.mjs";
import measurements from "./cases/seed-measurements.mjs";
import migrations from "./cases/seed-migrations.mjs";

const server = target();
await server.clear(PREFIX);
await runCases({
  part: "seed",
  target: server,
  wrangler: option("wrangler", "4.103"),
  cases: [...measurements, ...migrations],
  snapshots: false,
});
await server.clear(PREFIX);
