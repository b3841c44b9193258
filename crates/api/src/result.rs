//! What a statement gave: rows and figures, in the forms that D1's faces send.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::json;

/// One value of a row, borrowed from where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// `null`.
    Null,
    /// All 64 bits, in decimal.
    Integer(i64),
    /// As ECMAScript prints it; infinities are `null`.
    Real(f64),
    /// A string.
    Text(&'a str),
    /// An array of numbers from 0 to 255.
    Blob(&'a [u8]),
}

/// Rows that can be read by place, so that they need not be copied to be written.
pub trait Rowset {
    /// Column names; may be empty texts and may repeat.
    fn columns(&self) -> &[String];
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// The value at `row` and `column`, both below their counts.
    fn cell(&self, row: usize, column: usize) -> Cell<'_>;
}

/// A statement's figures, in the order in which D1 sends them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta<'a> {
    /// What served the query: Hearth and its version.
    pub served_by: Cow<'a, str>,
    /// The configured region, for example `WEUR`.
    pub served_by_region: Cow<'a, str>,
    /// False on a replica.
    pub served_by_primary: bool,
    /// Time spent in SQL alone.
    pub timings: Timings,
    /// Milliseconds.
    pub duration: f64,
    /// Rows changed.
    pub changes: u64,
    /// Last rowid inserted on the connection.
    pub last_row_id: i64,
    /// Whether the database changed.
    pub changed_db: bool,
    /// Bytes of the database afterwards.
    pub size_after: u64,
    /// Rows scanned.
    pub rows_read: u64,
    /// Rows and index entries written.
    pub rows_written: u64,
    /// How often the query was tried.
    pub total_attempts: u32,
}

/// Part of [`Meta`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Milliseconds.
    pub sql_duration_ms: f64,
}

/// How `results` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `[{"a":1,"b":2}]`. Of columns with the same name the last value is kept, in the first one's place.
    Objects,
    /// `{"columns":["a","b"],"rows":[[1,2]]}`. Keeps columns with the same name apart.
    ColumnsAndRows,
}

/// Appends a REST result: `results`, `success`, `meta`.
pub fn write_query_result(out: &mut Vec<u8>, rows: &dyn Rowset, meta: &Meta<'_>, form: Form) {
    out.extend_from_slice(br#"{"results":"#);
    write_rows(out, rows, form);
    out.extend_from_slice(br#","success":true,"meta":"#);
    write_meta(out, meta);
    out.push(b'}');
}

/// Appends figures. Written by hand, so that `1` ms prints as `1` and not as `1.0`.
pub fn write_meta(out: &mut Vec<u8>, meta: &Meta<'_>) {
    out.extend_from_slice(br#"{"served_by":"#);
    json::string(out, &meta.served_by);
    out.extend_from_slice(br#","served_by_region":"#);
    json::string(out, &meta.served_by_region);
    out.extend_from_slice(br#","served_by_primary":"#);
    json::integer(out, meta.served_by_primary);
    out.extend_from_slice(br#","timings":{"sql_duration_ms":"#);
    json::number(out, meta.timings.sql_duration_ms);
    out.extend_from_slice(br#"},"duration":"#);
    json::number(out, meta.duration);
    out.extend_from_slice(br#","changes":"#);
    json::integer(out, meta.changes);
    out.extend_from_slice(br#","last_row_id":"#);
    json::integer(out, meta.last_row_id);
    out.extend_from_slice(br#","changed_db":"#);
    json::integer(out, meta.changed_db);
    out.extend_from_slice(br#","size_after":"#);
    json::integer(out, meta.size_after);
    out.extend_from_slice(br#","rows_read":"#);
    json::integer(out, meta.rows_read);
    out.extend_from_slice(br#","rows_written":"#);
    json::integer(out, meta.rows_written);
    out.extend_from_slice(br#","total_attempts":"#);
    json::integer(out, meta.total_attempts);
    out.push(b'}');
}

/// Appends rows in the given form.
pub fn write_rows(out: &mut Vec<u8>, rows: &dyn Rowset, form: Form) {
    match form {
        Form::Objects => write_objects(out, rows),
        Form::ColumnsAndRows => write_columns_and_rows(out, rows),
    }
}

fn write_objects(out: &mut Vec<u8>, rows: &dyn Rowset) {
    let keys = object_keys(rows.columns());
    out.push(b'[');
    for row in 0..rows.n_rows() {
        out.extend_from_slice(if row > 0 { b",{" } else { b"{" });
        for (key, column) in &keys {
            out.extend_from_slice(key);
            write_cell(out, rows.cell(row, *column));
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// The keys of each row's object, ready to be written (`,"name":`), and the column each is read from.
fn object_keys(columns: &[String]) -> Vec<(Vec<u8>, usize)> {
    let mut keys: Vec<(Vec<u8>, usize)> = Vec::with_capacity(columns.len());
    let mut place = std::collections::HashMap::with_capacity(columns.len());
    for (column, name) in columns.iter().enumerate() {
        if let Some(at) = place.get(name.as_str()) {
            let key: &mut (Vec<u8>, usize) = &mut keys[*at];
            key.1 = column;
            continue;
        }
        place.insert(name.as_str(), keys.len());
        let mut key = if keys.is_empty() { Vec::new() } else { vec![b','] };
        json::string(&mut key, name);
        key.push(b':');
        keys.push((key, column));
    }
    keys
}

fn write_columns_and_rows(out: &mut Vec<u8>, rows: &dyn Rowset) {
    let columns = rows.columns();
    out.extend_from_slice(br#"{"columns":["#);
    for (i, name) in columns.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        json::string(out, name);
    }
    out.extend_from_slice(br#"],"rows":["#);
    for row in 0..rows.n_rows() {
        out.extend_from_slice(if row > 0 { b",[" } else { b"[" });
        for column in 0..columns.len() {
            if column > 0 {
                out.push(b',');
            }
            write_cell(out, rows.cell(row, column));
        }
        out.push(b']');
    }
    out.extend_from_slice(b"]}");
}

fn write_cell(out: &mut Vec<u8>, cell: Cell<'_>) {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Integer(value) => json::integer(out, value),
        Cell::Real(value) => json::number(out, value),
        Cell::Text(text) => json::string(out, text),
        Cell::Blob(bytes) => json::blob(out, bytes),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    pub(crate) enum Owned {
        Null,
        Integer(i64),
        Real(f64),
        Text(String),
        Blob(Vec<u8>),
    }

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Table {
        pub(crate) columns: Vec<String>,
        pub(crate) rows: Vec<Vec<Owned>>,
    }

    impl Table {
        pub(crate) fn new(columns: &[&str], rows: Vec<Vec<Owned>>) -> Self {
            Self { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows }
        }
    }

    impl Rowset for Table {
        fn columns(&self) -> &[String] {
            &self.columns
        }
        fn n_rows(&self) -> usize {
            self.rows.len()
        }
        fn cell(&self, row: usize, column: usize) -> Cell<'_> {
            match &self.rows[row][column] {
                Owned::Null => Cell::Null,
                Owned::Integer(value) => Cell::Integer(*value),
                Owned::Real(value) => Cell::Real(*value),
                Owned::Text(text) => Cell::Text(text),
                Owned::Blob(bytes) => Cell::Blob(bytes),
            }
        }
    }

    pub(crate) fn meta() -> Meta<'static> {
        Meta {
            served_by: "hearth-0.1.0".into(),
            served_by_region: "WEUR".into(),
            served_by_primary: true,
            timings: Timings { sql_duration_ms: 0.07 },
            duration: 1.0,
            changes: 1,
            last_row_id: -5,
            changed_db: true,
            size_after: 12288,
            rows_read: 2,
            rows_written: 3,
            total_attempts: 1,
        }
    }

    fn check(table: &Table, form: Form, expected: Expect) {
        let mut out = Vec::new();
        write_rows(&mut out, table, form);
        expected.assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn a_result_has_d1s_keys_in_d1s_order() {
        let mut out = Vec::new();
        write_query_result(&mut out, &Table::new(&["n"], vec![vec![Owned::Integer(1171)]]), &meta(), Form::Objects);
        expect![[r#"{"results":[{"n":1171}],"success":true,"meta":{"served_by":"hearth-0.1.0","served_by_region":"WEUR","served_by_primary":true,"timings":{"sql_duration_ms":0.07},"duration":1,"changes":1,"last_row_id":-5,"changed_db":true,"size_after":12288,"rows_read":2,"rows_written":3,"total_attempts":1}}"#]]
            .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn figures_read_back_the_same() {
        let mut out = Vec::new();
        write_meta(&mut out, &meta());
        assert_eq!(serde_json::from_slice::<Meta<'_>>(&out).unwrap(), meta());
    }

    #[test]
    fn every_type_of_value_has_its_form() {
        let row = || {
            vec![
                Owned::Null,
                Owned::Integer(i64::MAX),
                Owned::Integer(i64::MIN),
                Owned::Real(1.0),
                Owned::Real(f64::INFINITY),
                Owned::Text("a\0\"\\\n\u{fffd}é".to_owned()),
                Owned::Blob(vec![0, 255]),
            ]
        };
        check(
            &Table::new(&["a", "b", "c", "d", "e", "f", ""], vec![row(), row()]),
            Form::ColumnsAndRows,
            expect![[
                r#"{"columns":["a","b","c","d","e","f",""],"rows":[[null,9223372036854775807,-9223372036854775808,1,null,"a\u0000\"\\\n�é",[0,255]],[null,9223372036854775807,-9223372036854775808,1,null,"a\u0000\"\\\n�é",[0,255]]]}"#
            ]],
        );
    }

    #[test]
    fn of_columns_with_one_name_objects_keep_the_first_place_and_the_last_value() {
        let table = Table::new(&["a", "b", "a", ""], vec![vec![Owned::Integer(1), Owned::Integer(2), Owned::Integer(3), Owned::Null]]);
        check(&table, Form::Objects, expect![[r#"[{"a":3,"b":2,"":null}]"#]]);
        check(&table, Form::ColumnsAndRows, expect![[r#"{"columns":["a","b","a",""],"rows":[[1,2,3,null]]}"#]]);
    }

    #[test]
    fn no_rows_and_no_columns_are_empty_lists() {
        check(&Table::default(), Form::Objects, expect!["[]"]);
        check(&Table::default(), Form::ColumnsAndRows, expect![[r#"{"columns":[],"rows":[]}"#]]);
        check(&Table::new(&["a"], vec![]), Form::ColumnsAndRows, expect![[r#"{"columns":["a"],"rows":[]}"#]]);
        check(&Table::new(&[], vec![vec![], vec![]]), Form::Objects, expect!["[{},{}]"]);
    }

    fn value() -> impl Strategy<Value = Owned> {
        prop_oneof![
            Just(Owned::Null),
            any::<i64>().prop_map(Owned::Integer),
            any::<f64>().prop_map(Owned::Real),
            any::<String>().prop_map(Owned::Text),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Owned::Blob),
        ]
    }

    /// What a JSON reader must make of a value.
    fn as_json(value: &Owned) -> serde_json::Value {
        match value {
            Owned::Null => serde_json::Value::Null,
            Owned::Integer(value) => (*value).into(),
            Owned::Real(value) if value.is_finite() && value.fract() == 0.0 && value.abs() < 1e15 => {
                #[expect(clippy::cast_possible_truncation, reason = "whole and below 10^15")]
                let whole = *value as i64;
                whole.into()
            }
            Owned::Real(value) => serde_json::from_str(&value.to_string()).unwrap_or(serde_json::Value::Null),
            Owned::Text(text) => text.as_str().into(),
            Owned::Blob(bytes) => bytes.clone().into(),
        }
    }

    proptest! {
        #[test]
        fn any_rows_read_back_by_both_forms(
            (columns, rows) in (1usize..5).prop_flat_map(|n| (
                proptest::collection::vec(any::<String>(), n),
                proptest::collection::vec(proptest::collection::vec(value(), n), 0..5),
            ))
        ) {
            let table = Table { columns: columns.clone(), rows: rows.clone() };
            let mut out = Vec::new();
            write_rows(&mut out, &table, Form::ColumnsAndRows);
            let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(&read["columns"], &serde_json::json!(columns));
            out.clear();
            write_rows(&mut out, &table, Form::Objects);
            let objects: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(objects.len(), rows.len());
            for (i, row) in rows.iter().enumerate() {
                for (j, value) in row.iter().enumerate() {
                    let (got, expected) = (&read["rows"][i][j], as_json(value));
                    prop_assert!(*got == expected || got.as_f64() == expected.as_f64() && got.as_f64().is_some(), "{got} {expected}");
                    let last = columns.iter().rposition(|name| *name == columns[j]).unwrap();
                    prop_assert_eq!(&objects[i][&columns[j]], &read["rows"][i][last]);
                }
            }
        }
    }
}
