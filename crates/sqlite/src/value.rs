//! Values, statements and results: what goes into SQLite and what comes out.

/// One SQLite value. Text may hold NUL and, if it came out of SQLite, any bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `NULL`.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A double. SQLite stores NaN as `NULL`, so it never comes out.
    Real(f64),
    /// UTF-8 text; invalid sequences became U+FFFD on the way out.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// SQL text with its parameters. The text may hold several statements; parameters then belong to the last.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Statement {
    /// SQL, UTF-8, without NUL.
    pub sql: String,
    /// Values for `?1`, `?2`, … in order.
    pub params: Vec<Value>,
}

/// Statements that run in order as one transaction: all of them or none.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Batch {
    /// The items; each may hold several statements.
    pub items: Vec<Statement>,
    /// Whether each item is a Worker's prepared statement: it may hold several statements, and after
    /// the last one nothing but white space.
    pub is_prepared: bool,
}

impl Batch {
    /// A batch of one item without parameters.
    pub fn sql(sql: impl Into<String>) -> Self {
        Self { items: vec![Statement { sql: sql.into(), params: Vec::new() }], is_prepared: false }
    }
}

/// What one statement cost and changed. Exactly the figures that production reports.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Meta {
    /// Rows that the engine stepped over, not rows returned.
    pub rows_read: u64,
    /// Rows and index entries written.
    pub rows_written: u64,
    /// Rows inserted, updated or deleted, by triggers and foreign keys too.
    pub changes: u64,
    /// The connection's last rowid; keeps its value over statements that insert nothing.
    pub last_row_id: i64,
    /// Whether the statement changed the database.
    pub changed_db: bool,
    /// Bytes of the database after the statement.
    pub size_after: u64,
    /// Milliseconds spent in SQLite.
    pub duration_ms: f64,
}

/// One statement's rows and figures.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StatementResult {
    /// Column names, as SQLite gives them: may be empty and may repeat.
    pub columns: Vec<String>,
    /// `[row][column]`; each row is as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// Figures.
    pub meta: Meta,
}

/// One item's results, one for each statement in its text; never empty.
pub type ItemResults = Vec<StatementResult>;
