// Every D1 command of one wrangler against the server.
//
//   HEARTH_URL=… HEARTH_KEY=… node wrangler.mjs --wrangler 4.86|4.103|latest [--only TEXT]
//
// UPDATE=1 rewrites snapshots/<version>/.

import databases from "./cases/databases.mjs";
import execute from "./cases/execute.mjs";
import exports from "./cases/export.mjs";
import migrations from "./cases/migrations.mjs";
import { PREFIX } from "./lib/names.mjs";
import { finish } from "./lib/report.mjs";
import { option, runCases } from "./lib/suite.mjs";
import { target } from "./lib/target.mjs";

const server = await target();
await server.clear(PREFIX);
const report = await runCases({
  part: "wrangler",
  target: server,
  wrangler: option("wrangler", "latest"),
  cases: [...databases, ...execute, ...exports, ...migrations],
});
await finish(report, server);
