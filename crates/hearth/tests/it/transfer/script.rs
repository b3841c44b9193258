//! Writes files of mixed SQL of any size, without holding them in memory.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

/// Bytes of the text in a row of `large`; its statement stays under the limit of 100,000.
const BODY_BYTES: usize = 90_000;
/// Rows of `small` between two rows of `large`: half of the bytes are in each kind.
const SMALL_ROWS: u64 = 900;
/// A comment that is longer than what the server reads at a time.
const COMMENT_BYTES: usize = 300_000;

/// An index that is there before the rows, a trigger with CRLF, a `;` in a comment and `end` in lower case.
const SCHEMA: [&str; 6] = [
    "-- a file of a test; not a statement\r\nCREATE TABLE small(id INTEGER PRIMARY KEY, k INTEGER NOT NULL, t TEXT NOT NULL);\r\n",
    "CREATE INDEX small_k ON small(k);",
    "CREATE TABLE large(id INTEGER PRIMARY KEY, body TEXT NOT NULL);\n",
    "CREATE TABLE sums(n INTEGER NOT NULL, chars INTEGER NOT NULL);\n",
    "INSERT INTO sums VALUES (0, 0);\n",
    "create trigger small_added after insert on small begin\r\n  update sums set n = n + 1, chars = chars + length(new.t); -- not the end; end;\r\nend;\r\n",
];

/// A file in the making.
pub(super) struct Script {
    out: BufWriter<File>,
    made: Made,
    noise: u64,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) bytes: u64,
    pub(super) statements: u64,
    /// Rows of `small`.
    pub(super) small: u64,
    /// Characters in all of `small.t`.
    pub(super) chars: u64,
    /// Rows of `large`.
    pub(super) large: u64,
}

impl Script {
    /// Begins a file with the schema.
    pub(super) fn create(path: &Path) -> Self {
        let out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
        let mut script = Self { out, made: Made::default(), noise: 0x9e37_79b9_7f4a_7c15 };
        for sql in SCHEMA {
            script.statement(sql);
        }
        script.text(&format!("/*{}*/", "; ".repeat(COMMENT_BYTES / 2)));
        script
    }

    /// Statements so far.
    pub(super) fn statements(&self) -> u64 {
        self.made.statements
    }

    fn text(&mut self, text: &str) {
        self.out.write_all(text.as_bytes()).unwrap();
        self.made.bytes += text.len() as u64;
    }

    /// Adds a statement with its semicolon.
    pub(super) fn statement(&mut self, sql: &str) {
        self.text(sql);
        self.made.statements += 1;
    }

    /// Adds rows to `small`, with keys in no order and comments here and there.
    pub(super) fn small_rows(&mut self, n: u64) {
        for _ in 0..n {
            self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (id, key) = (self.made.small + 1, self.noise >> 32);
            let text = format!("row {id}; it's -- no comment /* é */ {:016x}", self.noise);
            self.statement(&format!("INSERT INTO small VALUES ({id}, {key}, '{}');\r\n", text.replace('\'', "''")));
            self.made.small += 1;
            self.made.chars += text.chars().count() as u64;
            if id % 50 == 0 {
                self.text("/* a comment; */ -- and another one;\r\n");
            }
        }
    }

    /// Adds a row to `large`.
    pub(super) fn large_row(&mut self) {
        let id = self.made.large + 1;
        let body = format!("{id:09}\n").repeat(BODY_BYTES / 10);
        self.statement(&format!("INSERT INTO large VALUES ({id}, '{body}');\n"));
        self.made.large += 1;
    }

    /// Adds rows of both kinds until the file has `bytes` bytes.
    pub(super) fn fill(mut self, bytes: u64) -> Self {
        while self.made.bytes < bytes {
            self.small_rows(SMALL_ROWS);
            self.large_row();
        }
        self
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> Made {
        self.out.flush().unwrap();
        self.made
    }
}
