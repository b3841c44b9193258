// The Worker behind oracle.mjs: does one D1 call a request and answers with what came back.

function value(v) {
  if (v === null || typeof v !== "object") return v;
  if (Array.isArray(v)) return v.map(value);
  if ("$blob" in v) return Array.isArray(v.$blob) ? new Uint8Array(v.$blob) : new Uint8Array(v.$blob.size);
  if ("$number" in v) return Number(v.$number);
  if ("$bigint" in v) return BigInt(v.$bigint);
  if ("$undefined" in v) return undefined;
  if ("$repeat" in v) return value(v.$repeat[0]).repeat(v.$repeat[1]);
  if ("$join" in v) return v.$join.map(value).join("");
  return v;
}

function statement(db, { sql, params }) {
  const prepared = db.prepare(value(sql));
  return params ? prepared.bind(...value(params)) : prepared;
}

async function call(db, request) {
  switch (request.op ?? "all") {
    case "all":
      return statement(db, request).all();
    case "run":
      return statement(db, request).run();
    case "first":
      return request.column === undefined
        ? statement(db, request).first()
        : statement(db, request).first(request.column);
    case "raw":
      return statement(db, request).raw({ columnNames: request.columnNames ?? false });
    case "batch":
      return db.batch(request.batch.map((one) => statement(db, one)));
    case "exec":
      return db.exec(value(request.sql));
    case "session": {
      const session = request.first === undefined ? db.withSession() : db.withSession(request.first);
      const before = session.getBookmark();
      const result = await statement(session, request).all();
      return { before, result, after: session.getBookmark() };
    }
    default:
      throw new Error(`unknown op ${request.op}`);
  }
}

function printable(key, v) {
  if (typeof v === "number" && !Number.isFinite(v)) return { $number: String(v) };
  if (typeof v === "bigint") return { $bigint: String(v) };
  if (typeof v === "string" && v.length > 2000) return `${v.slice(0, 60)}… (${v.length})`;
  return v;
}

export default {
  async fetch(request, env) {
    const asked = await request.json();
    let answer;
    try {
      const ok = await call(env[asked.db ?? "main"], asked);
      answer = ok === undefined ? { ok: null, undefined: true } : { ok };
    } catch (e) {
      answer = { error: String(e?.message ?? e), name: e?.name, cause: e?.cause ? String(e.cause.message ?? e.cause) : undefined };
    }
    return new Response(JSON.stringify(answer, printable));
  },
};
