// Requests that stop in their middle: by a close, by a reset, or by silence.

import assert from "node:assert/strict";
import { request } from "../lib/wire.mjs";

export default function halves({ root, db, shop, owner, sendAndClose }) {
  const whole = {
    "a query": request("POST", `${db}/query`, owner, '{"sql":"DELETE FROM t"}'),
    "a query through a binding": request("POST", "/query", { ...owner, "x-binding-kind": "d1", "x-binding-id": shop.uuid }, '{"sql":"DELETE FROM t"}'),
    "a batch in chunks": request("POST", `${db}/query`, { ...owner, "transfer-encoding": "chunked" }, '17\r\n{"sql":"DELETE FROM t"}\r\n0\r\n\r\n'),
    "a new database": request("POST", `${root}/d1/database`, owner, '{"name":"mine"}'),
    "a deletion": request("DELETE", db, owner),
    "a change": request("PATCH", db, owner, '{"read_replication":{"mode":"auto"}}'),
    "a new token": request("POST", `${root}/tokens`, owner, '{"name":"mine","scopes":["d1:*:write"]}'),
  };
  /** Where to stop: in the first line, in the headers, before the empty line, and just before the end. */
  const cuts = (bytes) => {
    const head = bytes.indexOf("\r\n\r\n");
    const places = [3, bytes.indexOf("\r\n") + 10, head, head + 3, head + 4, head + 5, bytes.length - 5, bytes.length - 1];
    return [...new Set(places)].filter((at) => at < bytes.length);
  };

  const cases = [];
  for (const [what, bytes] of Object.entries(whole)) {
    cases.push({
      name: `half sent: ${what}`,
      async body() {
        for (const at of cuts(bytes)) {
          for (const then of ["end", "reset"]) {
            const got = await sendAndClose(bytes.subarray(0, at), then);
            assert.ok(got.closed, `cut at ${at}, then ${then}: the connection stays open`);
            for (const { status } of got.answers) assert.equal(status, 400, `cut at ${at}, then ${then}: ${got.text}`);
          }
        }
      },
    });
  }
  const silent = async (bytes) => {
    const began = Date.now();
    const got = await sendAndClose(bytes);
    const ms = Date.now() - began;
    assert.ok(got.closed, `still open after ${ms} ms`);
    assert.ok(ms > 5_000, `given up after only ${ms} ms`);
    for (const { status } of got.answers) assert.ok([400, 408].includes(status), got.text);
  };
  cases.push(
    { name: "silence in the headers", slow: true, body: () => silent(whole["a query"].subarray(0, 40)) },
    { name: "silence in the body", slow: true, body: () => silent(whole["a query"].subarray(0, -1)) },
    { name: "silence in the chunks", slow: true, body: () => silent(whole["a batch in chunks"].subarray(0, -7)) },
    { name: "silence before anything", slow: true, body: () => silent("") },
  );
  return cases;
}
