//! Answers of the binding protocol, as the module behind `env.DB` reads them.
//!
//! The module looks at `error` and not at the HTTP status, and in a list at the first element only: a
//! failed batch is therefore one error, never an error behind results. It reads `meta` on every success.

use std::str::FromStr;

use base::{Code, Error, Result};

use crate::{
    json,
    result::{Form, Meta, Rowset, write_meta, write_rows},
};

/// What `?resultsFormat=` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsFormat {
    /// `{columns, rows}`.
    RowsAndColumns,
    /// A list of objects.
    ArrayOfObjects,
    /// What `run()` asks for. Workers rely on rows being there, so they are sent as objects.
    None,
}

impl ResultsFormat {
    /// The form of `results`.
    pub const fn form(self) -> Form {
        match self {
            Self::RowsAndColumns => Form::ColumnsAndRows,
            Self::ArrayOfObjects | Self::None => Form::Objects,
        }
    }
}

impl FromStr for ResultsFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "ROWS_AND_COLUMNS" => Ok(Self::RowsAndColumns),
            "ARRAY_OF_OBJECTS" => Ok(Self::ArrayOfObjects),
            "NONE" => Ok(Self::None),
            _ => {
                let shown: String = text.chars().take(64).collect();
                let expected = "expected ROWS_AND_COLUMNS, ARRAY_OF_OBJECTS or NONE";
                Err(Error::new(Code::BadRequest, format!("unknown resultsFormat (got `{shown}`, {expected})")))
            }
        }
    }
}

/// Appends one element of a success.
pub fn write_success(out: &mut Vec<u8>, rows: &dyn Rowset, meta: &Meta<'_>, format: ResultsFormat) {
    out.extend_from_slice(br#"{"success":true,"meta":"#);
    write_meta(out, meta);
    out.extend_from_slice(br#","results":"#);
    write_rows(out, rows, format.form());
    out.push(b'}');
}

/// A failure: one element, in a list if the request was one.
pub fn failure(error: &Error, is_array: bool) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(if is_array { br#"[{"success":false,"error":"# } else { br#"{"success":false,"error":"# });
    json::string(&mut out, &error.message);
    out.extend_from_slice(if error.retryable { br#","retryable":true}"# } else { br#","retryable":false}"# });
    if is_array {
        out.push(b']');
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::result::tests::{Owned, Table, meta};

    #[test]
    fn a_success_has_success_meta_and_results_in_this_order() {
        let table = Table::new(&["a"], vec![vec![Owned::Integer(1)]]);
        let written = |format| {
            let mut out = Vec::new();
            write_success(&mut out, &table, &meta(), format);
            let text = String::from_utf8(out).unwrap();
            let (head, results) = text.split_once(r#","results":"#).unwrap();
            assert!(head.starts_with(r#"{"success":true,"meta":{"served_by":"hearth-0.1.0","#), "{head}");
            results.to_owned()
        };
        expect![[r#"{"columns":["a"],"rows":[[1]]}}"#]].assert_eq(&written(ResultsFormat::RowsAndColumns));
        expect![[r#"[{"a":1}]}"#]].assert_eq(&written(ResultsFormat::ArrayOfObjects));
        expect![[r#"[{"a":1}]}"#]].assert_eq(&written(ResultsFormat::None));
    }

    #[test]
    fn a_failure_is_one_element() {
        let error = Error::new(Code::Sql, "no such table: t: SQLITE_ERROR");
        assert_eq!(failure(&error, false), br#"{"success":false,"error":"no such table: t: SQLITE_ERROR","retryable":false}"#);
        assert_eq!(failure(&error, true), br#"[{"success":false,"error":"no such table: t: SQLITE_ERROR","retryable":false}]"#);
    }

    #[test]
    fn an_unknown_format_is_refused_with_the_known_ones() {
        expect!["unknown resultsFormat (got `CSV`, expected ROWS_AND_COLUMNS, ARRAY_OF_OBJECTS or NONE)"]
            .assert_eq(&"CSV".parse::<ResultsFormat>().unwrap_err().message);
    }
}
