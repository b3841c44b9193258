//! What a `.sqltest` file says.

use std::fmt;

use sqlite::Value;

/// One file of the corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its name, for reports.
    pub name: String,
    /// Named setups, in order.
    pub setups: Vec<Setup>,
    /// Cases, in order.
    pub cases: Vec<Case>,
}

/// Statements under a name, for cases that begin alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Lower-case letters, digits and `_`.
    pub name: String,
    /// SQL with templates; each is a request of its own and must succeed.
    pub sql: Vec<String>,
}

/// One case: a fresh database, a setup, then requests with what they must give.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Says the behaviour; begins with a statement's id where there is one.
    pub name: String,
    /// Line of the name, from 1.
    pub line: usize,
    /// Named setups to run first, in order.
    pub uses: Vec<String>,
    /// The case's own setup, as [`Setup::sql`].
    pub setup: Vec<String>,
    /// Backends on which the case does not hold, each with the reason.
    pub skips: Vec<(String, String)>,
    /// Requests, in order; never empty.
    pub requests: Vec<Request>,
}

/// One request: a batch that is one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Line of the first item, from 1.
    pub line: usize,
    /// Whether it comes from a Worker's prepared statements, each of which holds one statement and nothing after it.
    pub prepared: bool,
    /// Statements of the batch; never empty.
    pub items: Vec<Item>,
    /// What it must give.
    pub expect: Expect,
    /// Lines of the expectation, from 0, for [`super::update`]. Empty and right after the items if it is missing.
    pub expect_lines: std::ops::Range<usize>,
}

/// SQL text with parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// SQL with templates; may hold several statements.
    pub sql: String,
    /// A JSON array with templates, as a client would send it.
    pub params: Option<String>,
}

/// What a request must give.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// Not written down yet; only [`super::parse_unfinished`] lets it pass.
    Missing,
    /// Exactly this error text, templates expanded.
    Error(String),
    /// One for each statement of the request, in order.
    Results(Vec<Expected>),
}

/// What one statement must give.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Expected {
    /// Column names; `None` is not compared.
    pub columns: Option<Vec<String>>,
    /// Rows in order. Compared unless [`Figure::Rows`] is given.
    pub rows: Vec<Vec<Value>>,
    /// Figures; those not named are not compared.
    pub figures: Vec<(Figure, Bound)>,
}

/// A figure of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Rows read.
    RowsRead,
    /// Rows written.
    RowsWritten,
    /// Rows changed.
    Changes,
    /// The connection's last rowid.
    LastRowId,
    /// 1 if the database changed, else 0; written `true` and `false`.
    ChangedDb,
    /// Bytes of the database.
    SizeAfter,
    /// Number of result rows, where their values vary.
    Rows,
}

impl Figure {
    /// All of them, in the order in which they are written.
    pub const ALL: [Self; 7] =
        [Self::RowsRead, Self::RowsWritten, Self::Changes, Self::LastRowId, Self::ChangedDb, Self::SizeAfter, Self::Rows];

    /// The name in `meta`, and `rows`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RowsRead => "rows_read",
            Self::RowsWritten => "rows_written",
            Self::Changes => "changes",
            Self::LastRowId => "last_row_id",
            Self::ChangedDb => "changed_db",
            Self::SizeAfter => "size_after",
            Self::Rows => "rows",
        }
    }

    /// The figure of a result.
    pub fn of(self, result: &sqlite::StatementResult) -> i64 {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        match self {
            Self::RowsRead => count(result.meta.rows_read),
            Self::RowsWritten => count(result.meta.rows_written),
            Self::Changes => count(result.meta.changes),
            Self::LastRowId => result.meta.last_row_id,
            Self::ChangedDb => i64::from(result.meta.changed_db),
            Self::SizeAfter => count(result.meta.size_after),
            Self::Rows => count(result.rows.len() as u64),
        }
    }
}

/// The values that a figure may have, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Smallest.
    pub min: i64,
    /// Largest.
    pub max: i64,
}

impl Bound {
    /// Exactly one value.
    pub const fn exactly(value: i64) -> Self {
        Self { min: value, max: value }
    }

    /// Whether `value` lies in it.
    pub fn holds(self, value: i64) -> bool {
        (self.min..=self.max).contains(&value)
    }
}

/// A figure as it stands in a file: `rows_read=3`, `rows_read=1..5`, `changed_db=true`.
pub(super) struct ShownFigure(pub(super) Figure, pub(super) Bound);

impl fmt::Display for ShownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(figure, Bound { min, max }) = self;
        match (figure, min == max) {
            (Figure::ChangedDb, true) => write!(f, "{}={}", figure.name(), *min != 0),
            (_, true) => write!(f, "{}={min}", figure.name()),
            (_, false) => write!(f, "{}={min}..{max}", figure.name()),
        }
    }
}
