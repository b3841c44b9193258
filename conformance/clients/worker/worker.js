// An ordinary Worker on a D1 binding. `GET /<scenario>?db=<binding>` runs one scenario and answers with what it gave.

const TITLE = "D1 as the spine: two SQL databases, one of them append-only";

const scenarios = {
  async setup(db) {
    await db.exec(
      [
        "DROP TABLE IF EXISTS articles",
        "DROP TABLE IF EXISTS t",
        "DROP TABLE IF EXISTS v",
        "CREATE TABLE articles (slug TEXT PRIMARY KEY, title TEXT, body TEXT)",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INTEGER NOT NULL DEFAULT 0)",
        "CREATE TABLE v (id INTEGER PRIMARY KEY, i INTEGER, r REAL, s TEXT, b BLOB, any_value)",
      ].join("\n"),
    );
    const insert = db.prepare("INSERT INTO articles VALUES (?1, ?2, ?3)");
    await db.batch(
      Array.from({ length: 120 }, (_, k) => insert.bind(`slug-${k}`, k === 60 ? TITLE : `Title ${k}`, "x".repeat(k))),
    );
    return (await db.prepare("SELECT count(*) AS n FROM articles").first("n"));
  },

  // As the document prints it, with `db` for `env.DB`.
  async snippet(db) {
    const title = TITLE;
    const res = await db.prepare("SELECT * FROM articles WHERE title = ?1")
      .bind(title).all();
    return { read: res.meta.rows_read, written: res.meta.rows_written, duration: res.meta.duration, results: res.results, success: res.success, meta: res.meta };
  },

  async run(db) {
    const insert = await db.prepare("INSERT INTO t (name, n) VALUES (?1, ?2)").bind("run", 7).run();
    const select = await db.prepare("SELECT name, n FROM t WHERE name = ?").bind("run").run();
    const returning = await db.prepare("UPDATE t SET n = n + 1 WHERE name = 'run' RETURNING n").run();
    return { insert, select: select.results, returning: returning.results };
  },

  async first(db) {
    const one = db.prepare("SELECT 1 AS a, 'two' AS b");
    return {
      row: await one.first(),
      column: await one.first("b"),
      none: await db.prepare("SELECT 1 AS a WHERE 0").first(),
    };
  },

  async firstColumnNotFound(db) {
    return db.prepare("SELECT 1 AS a").first("nope");
  },

  async raw(db) {
    const two = db.prepare("SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, 4");
    return {
      rows: await two.raw(),
      named: await two.raw({ columnNames: true }),
      empty: await db.prepare("SELECT slug, title FROM articles WHERE 0").raw({ columnNames: true }),
    };
  },

  async batch(db) {
    const results = await db.batch([
      db.prepare("INSERT INTO t (name) VALUES (?1)").bind("batch-1"),
      db.prepare("INSERT INTO t (name) VALUES (?1)").bind("batch-2"),
      db.prepare("SELECT name FROM t WHERE name LIKE 'batch-%' ORDER BY name"),
    ]);
    return results.map(({ success, results: rows, meta }) => ({ success, rows, changes: meta.changes, written: meta.rows_written }));
  },

  async batchFails(db) {
    await db.batch([
      db.prepare("INSERT INTO t (name) VALUES ('lost')"),
      db.prepare("DELETE FROM articles"),
      db.prepare("INSERT INTO nope VALUES (1)"),
    ]);
  },

  async batchPoison(db) {
    await db.batch([
      db.prepare("INSERT INTO t (name) VALUES ('lost')"),
      db.prepare('SELECT IIF((SELECT count(*) FROM articles) = 0, 1, json_extract("inconsistent", "$"))'),
    ]);
  },

  async batchFailsOnConstraint(db) {
    await db.batch([
      db.prepare("INSERT INTO t (name) VALUES ('lost')"),
      db.prepare("INSERT INTO t (name) VALUES ('lost')"),
    ]);
  },

  async afterFailures(db) {
    return {
      lost: await db.prepare("SELECT count(*) AS n FROM t WHERE name = 'lost'").first("n"),
      articles: await db.prepare("SELECT count(*) AS n FROM articles").first("n"),
    };
  },

  async exec(db) {
    return db.exec("CREATE TABLE IF NOT EXISTS e (a)\nINSERT INTO e VALUES (1)\n\nINSERT INTO e VALUES (2);");
  },

  async execFails(db) {
    await db.exec("INSERT INTO e VALUES (3)\nINSERT INTO nope VALUES (4)");
  },

  async execAfter(db) {
    return db.prepare("SELECT count(*) AS n FROM e WHERE a = 3").first("n");
  },

  async noTable(db) {
    return db.prepare("SELECT * FROM nope").all();
  },
  async syntax(db) {
    return db.prepare("SELEC 1").run();
  },
  async constraint(db) {
    await db.prepare("INSERT INTO t (name) VALUES ('twice')").run();
    return db.prepare("INSERT INTO t (name) VALUES ('twice')").run();
  },
  async undefinedValue(db) {
    return db.prepare("SELECT ?1").bind(undefined).all();
  },
  async tooFewParams(db) {
    return db.prepare("SELECT ?1, ?2").bind(1).all();
  },
  async begin(db) {
    return db.prepare("BEGIN TRANSACTION").run();
  },
  async empty(db) {
    return db.prepare("").all();
  },
  async compound(db) {
    return db.prepare(Array(6).fill("SELECT 1").join(" UNION ALL ")).all();
  },

  async values(db) {
    const insert = db.prepare("INSERT INTO v (i, r, s, b, any_value) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING *, typeof(i) ti, typeof(r) tr, typeof(s) ts, typeof(b) tb, typeof(any_value) ta");
    const bytes = Uint8Array.from({ length: 256 }, (_, k) => k);
    const rows = [];
    for (const values of [
      [0, 0, "", new Uint8Array(0), null],
      [9007199254740991, 0.1 + 0.2, "zwei é 漢 😀 \u0000 'q' \"d\" \\ \n", bytes, 1],
      [-9007199254740991, 1e300, "x", bytes.buffer, 1.5],
      [9007199254740992, 5e-324, "12", bytes.subarray(10, 14), "text"],
      [true, false, null, null, false],
      [null, null, 1, new Uint8Array([1]).buffer, new Uint8Array([255])],
    ]) {
      rows.push(await insert.bind(...values).first());
    }
    return rows;
  },

  async reuse(db) {
    const statement = db.prepare("SELECT ?1 AS x");
    const [a, b] = [statement.bind("a"), statement.bind("b")];
    return [await b.first("x"), await a.first("x"), await b.first("x")];
  },

  async parallel(db) {
    const got = await Promise.all(Array.from({ length: 24 }, (_, k) => db.prepare("SELECT ?1 AS k").bind(k).first("k")));
    return got.every((k, at) => k === at);
  },

  async manyRows(db) {
    const { results, meta } = await db
      .prepare("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000) SELECT x, hex(zeroblob(50)) AS pad FROM c")
      .all();
    return { n: results.length, last: results.at(-1).x, read: meta.rows_read };
  },

  async largest(db) {
    const { meta } = await db.prepare("INSERT INTO v (s) VALUES (?1)").bind("x".repeat(2_000_000)).run();
    const length = await db.prepare("SELECT length(s) AS n FROM v WHERE id = ?1").bind(meta.last_row_id).first("n");
    await db.prepare("DELETE FROM v WHERE id = ?1").bind(meta.last_row_id).run();
    return length;
  },
  async tooLarge(db) {
    return db.prepare("INSERT INTO v (s) VALUES (?1)").bind("x".repeat(2_000_001)).run();
  },
  async tooLong(db) {
    return db.prepare(`SELECT 1 /*${"x".repeat(100_000)}*/`).all();
  },

  async sessions(db) {
    const out = {};
    const session = db.withSession();
    out.before = session.getBookmark();
    await session.prepare("SELECT 1").all();
    out.afterRead = session.getBookmark();
    await session.prepare("INSERT INTO t (name) VALUES ('session-1')").run();
    out.afterWrite = session.getBookmark();
    const next = db.withSession(out.afterWrite);
    out.resumed = next.getBookmark();
    out.sees = await next.prepare("SELECT count(*) AS n FROM t WHERE name = 'session-1'").first("n");
    await next.batch([next.prepare("INSERT INTO t (name) VALUES ('session-2')"), next.prepare("SELECT 1")]);
    out.afterBatch = next.getBookmark();
    const primary = db.withSession("first-primary");
    out.primary = await primary.prepare("SELECT count(*) AS n FROM t WHERE name LIKE 'session-%'").first("n");
    out.primaryBookmark = primary.getBookmark();
    out.ordered = [out.afterRead, out.afterWrite, out.afterBatch].every((one, k, all) => k === 0 || one.localeCompare(all[k - 1]) > 0);
    return out;
  },

  async sessionFails(db) {
    return db.withSession("first-primary").prepare("SELECT * FROM nope").all();
  },

  async dump(db) {
    const bytes = new Uint8Array(await db.dump());
    return new TextDecoder().decode(bytes.subarray(0, 15));
  },
};

/** Bytes and other values that JSON has no form for, written so that a test can tell them apart. */
function printable(key, value) {
  if (value instanceof ArrayBuffer) return { arrayBuffer: [...new Uint8Array(value)] };
  if (ArrayBuffer.isView(value)) return { view: [...value] };
  return value;
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const scenario = scenarios[url.pathname.slice(1)];
    const db = env[url.searchParams.get("db") ?? "DB"];
    if (!scenario || !db) return new Response("no such scenario", { status: 404 });
    let answer;
    try {
      answer = { value: (await scenario(db, env)) ?? null };
    } catch (e) {
      answer = { error: { name: e.name, message: e.message, cause: e.cause ? String(e.cause.message ?? e.cause) : null } };
    }
    return new Response(JSON.stringify(answer, printable), { headers: { "content-type": "application/json" } });
  },
};
