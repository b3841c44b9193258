//! (a) `sqlite::execute` beside bare rusqlite, on the same file: no log, no network.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, Statement};
use sqlite::{Batch, Conn, OpenOptions, Value, execute};

use crate::{
    measure::{Noise, Sample},
    table::Line,
};

/// Rows of the table.
pub const ROWS: u64 = 100_000;
/// Rows of a scan.
pub const SCAN_ROWS: u64 = 100;
/// Reads one row.
pub const READ: &str = "SELECT id, k, name FROM t WHERE id = ?1";
/// Reads [`SCAN_ROWS`] rows.
pub const SCAN: &str = "SELECT id, k, name FROM t WHERE id >= ?1 ORDER BY id LIMIT 100";
/// Turns that each side takes.
const TURNS: u32 = 10;

/// Makes the table with its rows.
pub const FILL: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER NOT NULL, name TEXT NOT NULL);
WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c WHERE x < 99999)
INSERT INTO t SELECT x, x * 7919 % 100003, 'the name of row ' || x || ', of some length' FROM c";

/// One statement with one integer.
pub fn batch(sql: &str, parameter: u64) -> Batch {
    Batch {
        items: vec![sqlite::Statement { sql: sql.to_owned(), params: vec![Value::Integer(parameter.cast_signed())] }],
        is_prepared: false,
    }
}

/// Measures both sides for `time` each; returns the lines, and the baselines of the read and the scan.
pub fn run(folder: &Path, time: Duration) -> (Vec<Line>, [Sample; 2]) {
    let path = folder.join("engine.db");
    std::fs::write(&path, sqlite::empty_database()).unwrap();
    let mut ours = Conn::open(&path, &OpenOptions::default()).unwrap();
    execute::batch(&mut ours, &Batch::sql(FILL), &execute::Options::default()).unwrap();
    let bare = Connection::open(&path).unwrap();
    let mut lines = Vec::new();
    let baselines = [("primary-key read", READ, 1), ("scan of 100 rows", SCAN, SCAN_ROWS)].map(|(name, sql, rows)| {
        let (mut engine, mut kept, mut prepared) = (Sample::default(), Sample::default(), Sample::default());
        let mut statement = bare.prepare(sql).unwrap();
        let mut noise = Noise::new(1);
        let mut next = || noise.below(ROWS - SCAN_ROWS);
        for _ in 0..TURNS {
            engine.append(Sample::take(time / TURNS, || {
                let results = execute::batch(&mut ours, &batch(sql, next()), &execute::Options::default()).unwrap();
                assert_eq!(results[0][0].rows.len() as u64, rows);
            }));
            kept.append(Sample::take(time / TURNS, || assert_eq!(read(&mut statement, next()), rows)));
            prepared.append(Sample::take(time / TURNS, || assert_eq!(read(&mut bare.prepare(sql).unwrap(), next()), rows)));
        }
        lines.push(Line::new(format!("{name}: rusqlite, statement kept"), kept.clone(), &kept));
        lines.push(Line::new(format!("{name}: rusqlite, prepared each time"), prepared, &kept));
        lines.push(Line::new(format!("{name}: sqlite::execute"), engine, &kept));
        kept
    });
    (lines, baselines)
}

/// Reads rows as a program of its own would; returns how many there were.
fn read(statement: &mut Statement<'_>, parameter: u64) -> u64 {
    let rows = statement.query_map([parameter.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(i64, i64, String)> = rows.collect::<rusqlite::Result<_>>().unwrap();
    rows.len() as u64
}
