//! What each database was used for, by the hour, for the last 24 hours.
//!
//! Counted in memory and written to the catalogue every few seconds and at a clean stop: a crash
//! loses at most the last seconds of these figures, and nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};

use base::{DatabaseId, Result, Timestamp};
use log::Database;
use sqlite::{StatementResult, Value};

use crate::{HourUse, catalogue};

const HOUR_MS: i64 = 3_600_000;
/// Hours kept: the day that is asked for and the one that runs.
const HOURS_MAX: usize = 25;

#[derive(Default)]
pub(crate) struct Usage {
    hours: HashMap<DatabaseId, BTreeMap<i64, HourUse>>,
    dirty: HashSet<(DatabaseId, i64)>,
}

impl Usage {
    pub(crate) async fn load(system: &Database) -> Result<Self> {
        let mut usage = Self::default();
        let sql = "SELECT database, hour, read_queries, write_queries, rows_read, rows_written FROM usage";
        for row in catalogue::run(system, vec![catalogue::statement(sql, Vec::new())]).await? {
            let mut row = catalogue::Row(row.into_iter());
            let (id, hour) = (row.text()?.parse()?, row.integer()?);
            let used = HourUse {
                hour: Timestamp(hour),
                read_queries: row.integer()?.unsigned_abs(),
                write_queries: row.integer()?.unsigned_abs(),
                rows_read: row.integer()?.unsigned_abs(),
                rows_written: row.integer()?.unsigned_abs(),
            };
            usage.hours.entry(id).or_default().insert(hour, used);
        }
        Ok(usage)
    }

    pub(crate) fn add<'a>(&mut self, id: DatabaseId, now: Timestamp, results: impl Iterator<Item = &'a StatementResult>) {
        let hour = now.0 - now.0.rem_euclid(HOUR_MS);
        let hours = self.hours.entry(id).or_default();
        let used = hours.entry(hour).or_insert(HourUse {
            hour: Timestamp(hour),
            read_queries: 0,
            write_queries: 0,
            rows_read: 0,
            rows_written: 0,
        });
        for result in results {
            let wrote = result.meta.rows_written > 0 || result.meta.changed_db;
            used.read_queries += u64::from(!wrote);
            used.write_queries += u64::from(wrote);
            used.rows_read += result.meta.rows_read;
            used.rows_written += result.meta.rows_written;
        }
        while hours.len() > HOURS_MAX {
            hours.pop_first();
        }
        self.dirty.insert((id, hour));
    }

    /// The last 24 hours, oldest first.
    pub(crate) fn last_day(&self, id: DatabaseId, now: Timestamp) -> Vec<HourUse> {
        let from = now.0 - 24 * HOUR_MS;
        let hours = self.hours.get(&id);
        hours.into_iter().flat_map(|hours| hours.range(from..).map(|(_, used)| *used)).collect()
    }

    pub(crate) fn remove(&mut self, id: DatabaseId) {
        self.hours.remove(&id);
        self.dirty.retain(|(dirty, _)| *dirty != id);
    }

    /// Takes what has changed since the last call, as statements for the catalogue.
    pub(crate) fn take_changes(&mut self, now: Timestamp) -> Vec<sqlite::Statement> {
        let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        let dirty = std::mem::take(&mut self.dirty);
        let mut statements: Vec<_> = dirty
            .into_iter()
            .filter_map(|(id, hour)| {
                let used = self.hours.get(&id)?.get(&hour)?;
                let params = vec![
                    catalogue::text(id.to_string()),
                    Value::Integer(hour),
                    number(used.read_queries),
                    number(used.write_queries),
                    number(used.rows_read),
                    number(used.rows_written),
                ];
                Some(catalogue::statement("INSERT OR REPLACE INTO usage VALUES(?1, ?2, ?3, ?4, ?5, ?6)", params))
            })
            .collect();
        if !statements.is_empty() {
            let old = now.0 - (HOURS_MAX as i64) * HOUR_MS;
            statements.push(catalogue::statement("DELETE FROM usage WHERE hour < ?1", vec![Value::Integer(old)]));
        }
        statements
    }
}
