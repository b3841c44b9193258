// Requests written byte by byte on a socket of their own, and what came back.

import { connect } from "node:net";

const ANSWER_MS_MAX = 60_000;
/** How long after an answer the close may come. */
const CLOSE_MS_MAX = 3_000;
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Sends `pieces` one after another, and reads `n` answers, or until the server closes.
 *
 * - `then`: what to do once all is sent: `"wait"` (the default), `"end"` (half-close) or `"reset"`.
 * - Gives `{answers: [{status, headers, body, json}], closed, text}`. `closed`: the server closed, within a while of what it
 *   was to answer; without `n` that is waited for.
 */
export function exchange(url, pieces, { then = "wait", n = Number.POSITIVE_INFINITY } = {}) {
  const { hostname, port } = new URL(url);
  return new Promise((done) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let bytes = Buffer.alloc(0);
    const finish = (closed) => {
      clearTimeout(timer);
      socket.destroy();
      done({ ...read(bytes), closed, text: bytes.toString("latin1") });
    };
    let timer = setTimeout(() => finish(false), ANSWER_MS_MAX);
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      const { answers, closing } = read(bytes);
      if (answers.length > 0) {
        clearTimeout(timer);
        timer = setTimeout(() => finish(false), CLOSE_MS_MAX);
      }
      if (bytes.length > ANSWER_BYTES_MAX || (answers.length >= n && !closing)) finish(false);
    });
    socket.on("error", () => finish(true)); // a reset ends the exchange as a close does
    socket.on("close", () => finish(true));
    socket.on("connect", async () => {
      for (const piece of [pieces].flat()) await written(socket, piece);
      if (then === "end") socket.end();
      if (then === "reset") socket.resetAndDestroy();
    });
  });
}

/** Writes one piece, and lets the server see it before the next. */
function written(socket, piece) {
  return new Promise((done) => {
    // The callback comes with an error if the socket has gone; what the server said before that is what counts.
    socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece, () => setImmediate(done));
  });
}

/** The whole answers at the start of `bytes`, and whether the last of them announces a close. */
function read(bytes) {
  const answers = [];
  let rest = bytes;
  let closing = false;
  for (;;) {
    const head = rest.indexOf("\r\n\r\n");
    if (head === -1) break;
    const [line, ...lines] = rest.subarray(0, head).toString("latin1").split("\r\n");
    const status = Number(line.match(/^HTTP\/1\.[01] (\d{3})/)?.[1] ?? Number.NaN);
    const headers = new Map(lines.map((one) => [one.slice(0, one.indexOf(":")).toLowerCase(), one.slice(one.indexOf(":") + 1).trim()]));
    const length = Number(headers.get("content-length") ?? 0);
    if (rest.length < head + 4 + length) break;
    const body = rest.subarray(head + 4, head + 4 + length).toString("utf8");
    rest = rest.subarray(head + 4 + length);
    if (status === 100) continue;
    closing = headers.get("connection") === "close";
    answers.push({ status, headers, body, json: parsed(body) });
  }
  return { answers, closing };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text of a request. `body` gives its own content-length unless the headers say something about length. */
export function request(method, path, headers = {}, body = "") {
  const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : body;
  const framed = Object.keys(headers).some((name) => /^(content-length|transfer-encoding)$/i.test(name));
  const length = framed || (bytes.length === 0 && method === "GET") ? {} : { "content-length": bytes.length };
  const lines = Object.entries({ host: "hearth.test", ...length, ...headers }).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${one}\r\n`),
  );
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1"), bytes]);
}
