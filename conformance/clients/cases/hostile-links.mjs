// The two kinds of links that need no key: guessed, used up, half filled, of another database.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { refused } from "../lib/refused.mjs";
import { request } from "../lib/wire.mjs";

const SQL = "DELETE FROM t;";
const md5 = (text) => createHash("md5").update(text).digest("hex");

export default function links({ db, other, root, owner, send, sendAndClose, secrets }) {
  const otherDb = `${root}/d1/database/${other.uuid}`;
  const post = async (path, body) => send(request("POST", path, owner, JSON.stringify(body)));

  /** A link to upload to, as a path: its secret is to stay out of the log. */
  const begun = async (etag, database = db) => {
    const got = await post(`${database}/import`, { action: "init", etag });
    const { upload_url, filename } = got.answers[0].json.result;
    const path = new URL(upload_url).pathname;
    secrets.add(path.split("/").at(-1));
    return { path, filename };
  };
  const put = (path, bytes, headers) => send(request("PUT", path, headers, bytes));

  return [
    {
      name: "guessed links",
      async body() {
        for (const guess of ["0".repeat(64), "x", "owner.key", "..%2f..%2fowner.key", "%00", "f".repeat(5000)]) {
          refused(await put(`/uploads/${guess}`, SQL), 404, 7491);
          refused(await send(request("GET", `/exports/${guess}`)), 404, 7491);
        }
        const { path } = await begun(md5(SQL));
        refused(await put(path.slice(0, -1), SQL), 404, 7491);
        refused(await put(path.toUpperCase().replace("/UPLOADS/", "/uploads/").replace(/[A-F]$/, "g"), SQL), 404, 7491);
        refused(await send(request("GET", path.replace("/uploads/", "/exports/"))), 404, 7491);
      },
    },
    {
      name: "a link by another method",
      async body() {
        const { path } = await begun(md5(SQL));
        for (const method of ["GET", "POST", "DELETE"]) {
          const got = await send(request(method, path, {}, SQL));
          refused(got, 405, 7001);
          assert.equal(got.answers[0].headers.get("allow"), "PUT");
        }
      },
    },
    {
      name: "an upload that is cut",
      async body() {
        const { path, filename } = await begun(md5(SQL));
        const whole = request("PUT", path, {}, SQL);
        for (const then of ["end", "reset"]) {
          const got = await sendAndClose(whole.subarray(0, -2), then);
          assert.ok(got.closed);
          for (const { status } of got.answers) assert.equal(status, 400, got.text);
          refused(await post(`${db}/import`, { action: "ingest", filename, etag: md5(SQL) }), 400, 7500);
        }
      },
    },
    {
      name: "an upload of other bytes",
      async body() {
        const { path, filename } = await begun(md5("SELECT 1;"));
        const got = await put(path, SQL);
        assert.notEqual(got.answers[0].headers.get("etag"), `"${md5("SELECT 1;")}"`, "wrangler must see that it is not its file");
        refused(await post(`${db}/import`, { action: "ingest", filename, etag: md5("SELECT 1;") }), 400, 7500);
        refused(await post(`${db}/import`, { action: "ingest", filename, etag: md5(SQL) }), 400, 7500);
      },
    },
    {
      name: "a link that is used up",
      async body() {
        const { path } = await begun(md5(SQL));
        const first = await put(path, SQL);
        assert.equal(first.answers[0].status, 200);
        assert.equal(first.answers[0].headers.get("etag"), `"${md5(SQL)}"`);
        refused(await put(path, SQL), 404, 7491);
        refused(await put(path, "DROP TABLE t;"), 404, 7491);
      },
    },
    {
      name: "the file of another database",
      async body() {
        const text = "DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS secret;";
        const { path, filename } = await begun(md5(text), otherDb);
        assert.equal((await put(path, text)).answers[0].status, 200);
        refused(await post(`${db}/import`, { action: "ingest", filename, etag: md5(text) }), 400, 7500);
      },
    },
    {
      name: "files and bookmarks that are not there",
      async body() {
        for (const filename of ["nothing.sql", "../owner.key", "../../owner.key", "/etc/passwd", "", "a".repeat(10_000)]) {
          refused(await post(`${db}/import`, { action: "ingest", filename, etag: md5(SQL) }), 400, 7500);
        }
        for (const current_bookmark of ["", "nothing", "00000001-00000001-00000001-00000000000000000000000000000001"]) {
          refused(await post(`${db}/import`, { action: "poll", current_bookmark }), 400, 7500);
          refused(await post(`${db}/export`, { output_format: "polling", current_bookmark }), 400, 7500);
        }
      },
    },
    {
      name: "a link to an export",
      async body() {
        let state = await post(`${db}/export`, { output_format: "polling" });
        for (let k = 0; state.answers[0].json.result.status === "active"; k++) {
          assert.ok(k < 60, "still active");
          state = await post(`${db}/export`, { output_format: "polling", current_bookmark: state.answers[0].json.result.at_bookmark });
        }
        const { pathname } = new URL(state.answers[0].json.result.result.signed_url);
        secrets.add(pathname.split("/").at(-1));
        const got = await send(request("GET", pathname));
        assert.equal(got.answers[0].status, 200);
        assert.match(got.answers[0].body, /INSERT INTO/);
        refused(await send(request("GET", pathname.slice(0, -1))), 404, 7491);
        refused(await send(request("DELETE", pathname)), 405, 7001);
        refused(await put(pathname.replace("/exports/", "/uploads/"), SQL), 404, 7491);
        refused(await post(`${otherDb}/export`, { output_format: "polling", current_bookmark: state.answers[0].json.result.at_bookmark }), 400, 7500);
      },
    },
  ];
}
