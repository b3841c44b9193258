// wrangler d1 export, and the way back through execute --file.

import assert from "node:assert/strict";
import { freshDatabase } from "../lib/names.mjs";
import { exited, says } from "../lib/suite.mjs";

const FIXTURE = `
CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE books (id INTEGER PRIMARY KEY AUTOINCREMENT, author INTEGER NOT NULL REFERENCES authors(id), title TEXT, price REAL, cover BLOB, "odd name" TEXT);
CREATE INDEX books_author ON books(author);
CREATE VIEW titles AS SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author;
CREATE TRIGGER shout AFTER INSERT ON books WHEN new.title = 'trigger' BEGIN UPDATE books SET title = 'TRIGGER' WHERE id = new.id; END;
INSERT INTO authors VALUES (1, 'Ursula'), (2, 'it''s "quoted"; -- not a comment');
INSERT INTO books (author, title, price, cover, "odd name") VALUES
  (1, 'zwei é 漢 😀', 9.5, X'00ff10', NULL), (2, 'line
break', 1e300, X'', ''), (2, NULL, -0.5, NULL, 'tab	here');
`;

const TABLES = {
  authors: "SELECT * FROM authors ORDER BY id",
  books: "SELECT *, typeof(price) AS tp, typeof(cover) AS tc FROM books ORDER BY id",
  titles: "SELECT * FROM titles ORDER BY title",
  schema: "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name",
};

async function filled(target, name) {
  const made = await freshDatabase(target, name);
  await target.query(made.uuid, FIXTURE);
  return made;
}

async function contents(target, uuid) {
  const out = {};
  for (const [name, sql] of Object.entries(TABLES)) out[name] = (await target.query(uuid, sql))[0].results;
  return out;
}

/** Puts the text of a written file into the transcript. */
function show(project, path) {
  project.record([path], { stdout: project.read(path), stderr: "" }, "cat");
}

async function exportFull({ target, project }) {
  const from = await filled(target, "export");
  const run = exited(await project.wrangler("d1", "export", from.name, "--remote", "--output", "full.sql"), 0);
  says(run, "🌀 Downloaded to full.sql successfully!");
  const dump = project.read("full.sql");
  assert.ok(dump.startsWith("PRAGMA defer_foreign_keys=TRUE;"), `the dump begins with ${JSON.stringify(dump.slice(0, 60))}`);
  show(project, "full.sql");

  const to = await freshDatabase(target, "export-back");
  exited(await project.wrangler("d1", "execute", to.name, "--remote", "--file", "full.sql"), 0);
  assert.deepEqual(await contents(target, to.uuid), await contents(target, from.uuid));
  const [trigger] = await target.query(to.uuid, "INSERT INTO books (author, title) VALUES (1, 'trigger') RETURNING id");
  assert.equal(trigger.results[0].id, 4, "AUTOINCREMENT goes on where it was");
  const [shouted] = await target.query(to.uuid, "SELECT title FROM books WHERE id = 4");
  assert.equal(shouted.results[0].title, "TRIGGER");
}

async function exportNoData({ target, project }) {
  const from = await filled(target, "export-no-data");
  exited(await project.wrangler("d1", "export", from.name, "--remote", "--no-data", "--output", "schema.sql"), 0);
  const dump = project.read("schema.sql");
  assert.match(dump, /CREATE TABLE\s+["`]?authors/);
  assert.match(dump, /CREATE TRIGGER\s+["`]?shout/);
  assert.doesNotMatch(dump, /INSERT INTO "?(authors|books)/);
  show(project, "schema.sql");
}

async function exportNoSchema({ target, project }) {
  const from = await filled(target, "export-no-schema");
  exited(await project.wrangler("d1", "export", from.name, "--remote", "--no-schema", "--output", "data.sql"), 0);
  const dump = project.read("data.sql");
  assert.doesNotMatch(dump, /CREATE (TABLE|INDEX|VIEW|TRIGGER)/);
  assert.match(dump, /INSERT INTO "?authors"?/);
  show(project, "data.sql");

  const to = await freshDatabase(target, "export-no-schema-back");
  const schema = FIXTURE.slice(0, FIXTURE.indexOf("CREATE INDEX"));
  await target.query(to.uuid, schema);
  exited(await project.wrangler("d1", "execute", to.name, "--remote", "--file", "data.sql"), 0);
  const [{ results }] = await target.query(to.uuid, TABLES.books);
  assert.deepEqual(results, (await target.query(from.uuid, TABLES.books))[0].results);
}

async function exportTable({ target, project }) {
  const from = await filled(target, "export-table");
  exited(await project.wrangler("d1", "export", from.name, "--remote", "--table", "authors", "--output", "authors.sql"), 0);
  const dump = project.read("authors.sql");
  assert.match(dump, /CREATE TABLE\s+["`]?authors/);
  assert.match(dump, /INSERT INTO "?authors/);
  assert.doesNotMatch(dump, /books/);
  show(project, "authors.sql");
}

/** Production refuses to export a database with FTS5 tables. Here it goes out and comes back. */
async function exportFullText({ target, project }) {
  const from = await freshDatabase(target, "export-fts");
  await target.query(
    from.uuid,
    `CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT);
     CREATE VIRTUAL TABLE docs_fts USING fts5(body, content='docs', content_rowid='id');
     CREATE TRIGGER docs_ai AFTER INSERT ON docs BEGIN INSERT INTO docs_fts(rowid, body) VALUES (new.id, new.body); END;
     CREATE VIRTUAL TABLE notes USING fts5(title, body, tokenize='porter unicode61');
     INSERT INTO docs (body) VALUES ('the quick brown fox'), ('a lazy dog'), ('quick quick');
     INSERT INTO notes VALUES ('running', 'searches stem words'), ('other', 'nothing');`,
  );
  exited(await project.wrangler("d1", "export", from.name, "--remote", "--output", "fts.sql"), 0);
  show(project, "fts.sql");
  const to = await freshDatabase(target, "export-fts-back");
  exited(await project.wrangler("d1", "execute", to.name, "--remote", "--file", "fts.sql"), 0);
  for (const sql of [
    "SELECT rowid FROM docs_fts WHERE docs_fts MATCH 'quick' ORDER BY rowid",
    "SELECT title FROM notes WHERE notes MATCH 'run OR search' ORDER BY title",
    "SELECT count(*) AS n FROM docs",
  ]) {
    const [before] = await target.query(from.uuid, sql);
    const [after] = await target.query(to.uuid, sql);
    assert.ok(before.results.length > 0, sql);
    assert.deepEqual(after.results, before.results, sql);
  }
  await target.query(to.uuid, "INSERT INTO docs (body) VALUES ('one more quick')");
  const [more] = await target.query(to.uuid, "SELECT count(*) AS n FROM docs_fts WHERE docs_fts MATCH 'quick'");
  assert.equal(more.results[0].n, 3, "the index goes on being fed by its trigger");
}

/** A table that is not there gives no other table's rows, whatever else is answered. */
async function exportUnknownTable({ target, project }) {
  const from = await filled(target, "export-unknown");
  const run = await project.wrangler("d1", "export", from.name, "--remote", "--table", "nope", "--output", "nope.sql");
  if (run.code === 0) assert.doesNotMatch(project.read("nope.sql"), /INSERT|CREATE/);
  else exited(run, 1);
}

export default [
  { name: "export", body: exportFull },
  { name: "export no data", body: exportNoData },
  { name: "export no schema", body: exportNoSchema },
  { name: "export table", body: exportTable },
  { name: "export full text", body: exportFullText },
  { name: "export unknown table", body: exportUnknownTable },
];
