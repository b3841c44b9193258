// What is no HTTP, or HTTP that says two things at once; paths and methods that are in no table.

import assert from "node:assert/strict";
import { broken, refused } from "../lib/refused.mjs";
import { request } from "../lib/wire.mjs";

export default function framing({ root, db, owner, send, sendAndClose, target }) {
  const auth = `authorization: Bearer ${target.key}\r\n`;
  const harm = '{"sql":"DELETE FROM t"}';
  const head = (lines, method = "POST", path = `${db}/query`) => `${method} ${path} HTTP/1.1\r\nhost: hearth.test\r\n${auth}${lines}\r\n`;

  const noHttp = {
    "a word": "hello\r\n\r\n",
    "an empty line and nothing": "\r\n\r\n\r\n",
    "bytes": Buffer.from(Array.from({ length: 256 }, (_, k) => 255 - k)),
    "a TLS greeting": Buffer.concat([Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]), Buffer.alloc(505, 7)]),
    "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": `DELETE ${db}\r\n\r\n`,
    "HTTP/3.7": `DELETE ${db} HTTP/3.7\r\n${auth}\r\n`,
    "a space in the path": `DELETE ${db} x HTTP/1.1\r\n${auth}\r\n`,
    "a NUL in the path": `DELETE ${db}\0 HTTP/1.1\r\n${auth}\r\n`,
    "a NUL in a header": head("x: a\0b\r\ncontent-length: 0\r\n"),
    "a space before the colon": head(`content-length : ${harm.length}\r\n`) + harm,
    "a header that goes on in the next line": head(`x: a\r\n b\r\ncontent-length: ${harm.length}\r\n`) + harm,
    "a line without a colon": head(`nonsense\r\ncontent-length: ${harm.length}\r\n`) + harm,
    "a bare CR in a header": head(`x: a\rcontent-length: ${harm.length}\r\n`) + harm,
  };
  const badLength = {
    "no number": `content-length: abc\r\n`,
    "a negative number": `content-length: -1\r\n`,
    "a plus sign": `content-length: +${harm.length}\r\n`,
    "two numbers": `content-length: ${harm.length}\r\ncontent-length: 4\r\n`,
    "two numbers in one": `content-length: ${harm.length}, 4\r\n`,
    "past 64 bits": `content-length: 18446744073709551616\r\n`,
    "an unknown transfer coding": `transfer-encoding: gzip\r\n`,
    "chunked in the middle": `transfer-encoding: chunked, gzip\r\n`,
  };
  const badChunks = {
    "no number": "zz\r\n",
    "a sign": "-5\r\nabcde\r\n0\r\n\r\n",
    "past 64 bits": "ffffffffffffffffff\r\n",
    "longer than said": `5\r\n${harm}\r\n0\r\n\r\n`,
    "an endless extension": `${harm.length.toString(16)};${"x".repeat(100_000)}\r\n${harm}\r\n0\r\n\r\n`,
  };

  const cases = [];
  for (const [what, bytes] of Object.entries(noHttp)) {
    cases.push({ name: `no HTTP: ${what}`, body: async () => broken(await sendAndClose(bytes, "end"), 400, 505) });
  }
  for (const [what, lines] of Object.entries(badLength)) {
    cases.push({ name: `a length that is ${what}`, body: async () => broken(await sendAndClose(head(lines) + harm, "end"), 400, 501) });
  }
  for (const [what, chunks] of Object.entries(badChunks)) {
    cases.push({ name: `a chunk's length: ${what}`, body: async () => broken(await sendAndClose(head("transfer-encoding: chunked\r\n") + chunks), 400) });
  }

  return cases.concat([
    {
      name: "a head far over 64 KiB",
      async body() {
        const path = "/client/v4/user/tokens/verify";
        broken(await sendAndClose(head(`x: ${"y".repeat(200_000)}\r\n`, "GET", path)), 431);
        broken(await sendAndClose(head(Array.from({ length: 4_000 }, (_, k) => `x-${k}: ${"y".repeat(40)}\r\n`).join(""), "GET", path)), 431);
        broken(await sendAndClose(head("", "GET", `${path}?x=${"y".repeat(200_000)}`)), 414, 431);
        broken(await sendAndClose(head("x: y\r\n".repeat(500), "GET", path)), 431);
      },
    },
    {
      name: "a length beside chunks hides no second request",
      async body() {
        const hidden = `DELETE ${db} HTTP/1.1\r\nhost: hearth.test\r\n${auth}\r\n`;
        for (const lines of ["content-length: 4\r\ntransfer-encoding: chunked\r\n", "transfer-encoding: chunked\r\ncontent-length: 4\r\n"]) {
          const got = await sendAndClose(`${head(lines)}0\r\n\r\n${hidden}`);
          assert.equal(got.answers.length, 1, `both were answered:\n${got.text.slice(0, 2000)}`);
          assert.ok(got.closed, "the connection stays open");
        }
      },
    },
    {
      name: "paths that are in no table",
      async body() {
        const account = "f".repeat(32);
        const paths = ["/", "/client", "/client/v4", "/client/v4/", "/client/v4/user/", "//client/v4/user", "/client/v4//user", "/client/v4/./user", "/client/v4/accounts/../user", "/CLIENT/v4/user", "/client/v4/user%2Ftokens", `/client/v4/accounts/${account}/d1/database`, `${root}/d1`, `${root}/d1/database/`, `${db}/`, `${db}/query/`, `${db}/nothing`, "/query", "/execute", "/owner.key", "/uploads", "/uploads/", "/exports/", "/exports/a/b", `${root}/d1/database/../../../user`];
        for (const path of paths) refused(await send(request("GET", path, owner)), 404, 7003);
        refused(await send(request("DELETE", `/client/v4/accounts/${account}/d1/database/shop`, owner)), 404, 7003);
        refused(await send(request("GET", `/${"x".repeat(60_000)}`, owner)), 404, 7003);
      },
    },
    {
      name: "a path that is not UTF-8",
      async body() {
        refused(await send(request("DELETE", `${root}/d1/database/%ff`, owner)), 400, 7400);
        refused(await send(request("GET", `${root}/d1/database?name=%ff`, owner)), 400, 7400);
        refused(await send(request("GET", `${root}/d1/database?page=-1`, owner)), 400, 7400);
        refused(await send(request("GET", `${root}/d1/database?per_page=1e9`, owner)), 400, 7400);
      },
    },
    {
      name: "methods that are in no table",
      async body() {
        for (const [method, path, allowed] of [["DELETE", "/client/v4/user", "GET"], ["POST", db, "GET, PATCH, PUT, DELETE"], ["GET", `${db}/query`, "POST"], ["BREW", `${db}/query`, "POST"], ["delete", db, "GET, PATCH, PUT, DELETE"], ["TRACE", db, "GET, PATCH, PUT, DELETE"]]) {
          const got = await send(request(method, path, owner));
          refused(got, 405, 7001);
          assert.equal(got.answers[0].headers.get("allow"), allowed);
          assert.ok(!got.text.includes(target.key), "the answer gives the key back");
        }
        const connect = await send(`CONNECT ${new URL(target.url).host} HTTP/1.1\r\nhost: x\r\n${auth}\r\n`);
        assert.ok(connect.answers[0].status >= 400, connect.text);
      },
    },
    {
      name: "an answer to HEAD has no body",
      async body() {
        const got = await sendAndClose(`HEAD ${db} HTTP/1.1\r\nhost: x\r\n${auth}\r\nGET /client/v4/user/tokens/verify HTTP/1.1\r\nhost: x\r\n${auth}connection: close\r\n\r\n`);
        const [, ...rest] = got.text.split("HTTP/1.1 ").slice(1);
        assert.equal(rest.length, 1, got.text);
        assert.match(got.text, /^HTTP\/1\.1 200 [^]*?\r\n\r\nHTTP\/1\.1 200 /, "the second answer follows the first's head");
      },
    },
  ]);
}
