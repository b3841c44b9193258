// A door before a server: passes every request on, and lets a test act before a chosen one.

import { Agent, createServer, request } from "node:http";

const BODY_BYTES_MAX = 16 * 1024 * 1024;

export class Door {
  /** `backend`: the server's address; it may be changed while the door is open. */
  constructor(backend) {
    this.backend = backend;
    /** `async ({method, path, body}) => {}`, awaited before a request is passed on. */
    this.before = async () => {};
    this.listener = createServer((from, to) => this.pass(from, to));
    this.agent = new Agent({ keepAlive: false }); // a kept connection could be of a server that was killed
  }

  async open() {
    await new Promise((done) => this.listener.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.listener.address().port}`;
    return this;
  }

  async close() {
    this.listener.closeAllConnections();
    await new Promise((done) => this.listener.close(done));
  }

  async pass(from, to) {
    try {
      const body = await whole(from);
      await this.before({ method: from.method, path: from.url, body: body.toString("utf8") });
      const { hostname, port } = new URL(this.backend);
      const on = request({ agent: this.agent, hostname, port, method: from.method, path: from.url, headers: from.headers, setHost: false });
      on.on("error", () => to.destroy()); // as if the client had met the broken connection itself
      on.on("response", (answer) => {
        to.writeHead(answer.statusCode, answer.headers);
        answer.on("error", () => to.destroy());
        answer.pipe(to);
      });
      on.end(body);
    } catch {
      to.destroy();
    }
  }
}

async function whole(stream) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error(`a body of more than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
