//! Bodies that carry SQL: `{sql, params?}` or `{batch: [{sql, params?}]}` on REST, one statement or a
//! list of them on a binding.
//!
//! A parameter is a JSON scalar, or an array of 0 to 255 for a blob. Every JSON number, and a boolean as 1
//! or 0, is bound as a double, as D1 binds it: the column's affinity makes it an integer where it is one.

use std::fmt;

use base::{Code, Error, Result};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::decode::decode;

/// Parameters of one statement that are read at all: as many as SQLite can number. A profile's own limit is lower.
pub const PARAMS_MAX: usize = 32_766;
/// Statements of one request that are read at all: as many as the profile `unlimited` runs. A statement takes
/// more memory than its ten bytes of JSON do.
pub const STATEMENTS_MAX: usize = 1_000_000;

/// A value to bind.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// `null`.
    Null,
    /// A number, or a boolean as 1 or 0.
    Number(f64),
    /// A string.
    Text(String),
    /// An array of numbers from 0 to 255.
    Blob(Vec<u8>),
}

/// SQL text with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementBody {
    /// One or several statements.
    pub sql: String,
    /// In order.
    pub params: Vec<Param>,
}

/// What a binding sends.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingBody {
    /// The statements.
    pub statements: Vec<StatementBody>,
    /// Whether they came as an array, and the answer must be one too.
    pub is_array: bool,
}

/// Reads the body of `POST …/query` and `POST …/raw`.
///
/// # Errors
/// [`Code::BadRequest`] if it is no such body; [`Code::Statement`] if it holds no statement, a
/// parameter of a type that cannot be bound, or a NUL in SQL.
pub fn decode_rest(bytes: &[u8]) -> Result<Vec<StatementBody>> {
    #[derive(Deserialize)]
    struct Body {
        sql: Option<String>,
        params: Option<RawParams>,
        batch: Option<RawBatch>,
    }
    let body: Body = decode(bytes)?;
    let raw = match (body.sql, body.batch) {
        (Some(sql), None) => RawBatch::one(RawStatement { sql, params: body.params }),
        (None, Some(_)) if body.params.is_some() => {
            return Err(Error::new(Code::BadRequest, "`params` stands beside `batch` (expected it inside each statement of the batch)"));
        }
        (None, Some(batch)) => batch,
        (Some(_), Some(_)) => return Err(Error::new(Code::BadRequest, "the body has both `sql` and `batch` (expected one of them)")),
        (None, None) => return Err(Error::new(Code::BadRequest, "the body has neither `sql` nor `batch` (expected one of them)")),
    };
    finish(raw)
}

/// Reads the body of a binding's `/query` and `/execute`.
///
/// # Errors
/// As [`decode_rest`].
pub fn decode_binding(bytes: &[u8]) -> Result<BindingBody> {
    let is_array = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let raw = if is_array { decode(bytes)? } else { RawBatch::one(decode(bytes)?) };
    Ok(BindingBody { statements: finish(raw)?, is_array })
}

#[derive(Deserialize)]
struct RawStatement {
    sql: String,
    params: Option<RawParams>,
}

/// A list of parameters, or what was wrong with it. A wrong type is no fault of the JSON: it is
/// kept until the whole body is read, because it is answered as D1 answers a failed statement.
enum RawParams {
    Fine(Vec<Param>),
    Wrong(String),
}

/// The first [`STATEMENTS_MAX`] statements of a list, and how many there are.
struct RawBatch {
    statements: Vec<RawStatement>,
    n: usize,
}

impl RawBatch {
    fn one(statement: RawStatement) -> Self {
        Self { statements: vec![statement], n: 1 }
    }
}

fn finish(raw: RawBatch) -> Result<Vec<StatementBody>> {
    match raw.n {
        0 => Err(Error::new(Code::Statement, "No SQL statements detected.")),
        n if n > STATEMENTS_MAX => {
            Err(Error::new(Code::Statement, format!("too many statements in one request (got {n}, expected at most {STATEMENTS_MAX})")))
        }
        _ => raw.statements.into_iter().map(finish_one).collect(),
    }
}

fn finish_one(raw: RawStatement) -> Result<StatementBody> {
    if let Some(at) = raw.sql.find('\0') {
        return Err(Error::new(Code::Statement, format!("SQL text holds a NUL character at byte {at} (bind it as a parameter instead)")));
    }
    match raw.params {
        None => Ok(StatementBody { sql: raw.sql, params: Vec::new() }),
        Some(RawParams::Fine(params)) => Ok(StatementBody { sql: raw.sql, params }),
        Some(RawParams::Wrong(what)) => Err(Error::new(Code::Statement, what)),
    }
}

impl<'de> Deserialize<'de> for RawBatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = RawBatch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of statements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawBatch, A::Error> {
        let mut batch = RawBatch { statements: Vec::new(), n: 0 };
        while let Some(statement) = seq.next_element::<RawStatement>()? {
            batch.n += 1;
            if batch.n <= STATEMENTS_MAX {
                batch.statements.push(statement);
            }
        }
        Ok(batch)
    }
}

impl<'de> Deserialize<'de> for RawParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = RawParams;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of parameters")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawParams, A::Error> {
        let mut params = Vec::new();
        let mut wrong = None;
        while let Some(param) = seq.next_element::<RawParam>()? {
            match param {
                _ if wrong.is_some() => {}
                _ if params.len() == PARAMS_MAX => {
                    wrong = Some(format!("too many parameters for one statement (expected at most {PARAMS_MAX})"));
                }
                RawParam::Fine(param) => params.push(param),
                RawParam::Wrong(what) => wrong = Some(format!("{what} for parameter {}", params.len() + 1)),
            }
        }
        Ok(wrong.map_or(RawParams::Fine(params), RawParams::Wrong))
    }
}

enum RawParam {
    Fine(Param),
    Wrong(&'static str),
}

impl<'de> Deserialize<'de> for RawParam {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParamVisitor)
    }
}

struct ParamVisitor;

impl<'de> Visitor<'de> for ParamVisitor {
    type Value = RawParam;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a parameter: null, a boolean, a number, a string or an array of bytes")
    }

    fn visit_unit<E>(self) -> Result<RawParam, E> {
        Ok(RawParam::Fine(Param::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawParam, E> {
        Ok(RawParam::Fine(Param::Number(f64::from(u8::from(value)))))
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript rounds past 2^53 too; D1 never sees the digits")]
    fn visit_u64<E>(self, value: u64) -> Result<RawParam, E> {
        Ok(RawParam::Fine(Param::Number(value as f64)))
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript rounds past 2^53 too; D1 never sees the digits")]
    fn visit_i64<E>(self, value: i64) -> Result<RawParam, E> {
        Ok(RawParam::Fine(Param::Number(value as f64)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawParam, E> {
        Ok(RawParam::Fine(Param::Number(value)))
    }

    fn visit_str<E>(self, text: &str) -> Result<RawParam, E> {
        Ok(RawParam::Fine(Param::Text(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<RawParam, E> {
        Ok(RawParam::Fine(Param::Text(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawParam, A::Error> {
        let mut bytes = Vec::new();
        let mut fine = true;
        while let Some(Byte(byte)) = seq.next_element()? {
            match byte {
                Some(byte) if fine => bytes.push(byte),
                Some(_) => {}
                None => fine = false,
            }
        }
        Ok(if fine {
            RawParam::Fine(Param::Blob(bytes))
        } else {
            RawParam::Wrong("an array that is no blob (expected whole numbers from 0 to 255)")
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawParam, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(RawParam::Wrong("Type 'object' not supported (expected null, a boolean, a number, a string or an array of bytes)"))
    }
}

/// A member of an array: a byte, or anything else.
struct Byte(Option<u8>);

impl<'de> Deserialize<'de> for Byte {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByteVisitor)
    }
}

struct ByteVisitor;

impl<'de> Visitor<'de> for ByteVisitor {
    type Value = Byte;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 255")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Byte, E> {
        Ok(Byte(u8::try_from(value).ok()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Byte, E> {
        Ok(Byte(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Byte, E> {
        Ok(Byte(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Byte, E> {
        Ok(Byte(None))
    }

    fn visit_unit<E>(self) -> Result<Byte, E> {
        Ok(Byte(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Byte, E> {
        Ok(Byte(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Byte, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Byte(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Byte, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Byte(None))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(body: &str, expected: Expect) {
        let shown = match decode_rest(body.as_bytes()) {
            Ok(statements) => statements.iter().map(|s| format!("{} {:?}", s.sql, s.params)).collect::<Vec<_>>().join(" | "),
            Err(error) => format!("{:?} {}", error.code, error.message),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn sql_and_batch_are_read_with_their_parameters() {
        check(r#"{"sql":"SELECT 1"}"#, expect!["SELECT 1 []"]);
        check(r#"{"sql":"SELECT 1","params":[],"other":{"x":[1]}}"#, expect!["SELECT 1 []"]);
        check(r#"{"sql":"SELECT 1","params":null}"#, expect!["SELECT 1 []"]);
        check(r#"{"batch":[{"sql":"a"},{"sql":"b","params":["x"]}]}"#, expect![[r#"a [] | b [Text("x")]"#]]);
    }

    #[test]
    fn every_scalar_and_a_blob_can_be_bound() {
        check(
            r#"{"sql":"s","params":[null,true,false,1,-1,1.5,9007199254740993,1e300,"t","",[],[0,255]]}"#,
            expect![[
                r#"s [Null, Number(1.0), Number(0.0), Number(1.0), Number(-1.0), Number(1.5), Number(9007199254740992.0), Number(1e300), Text("t"), Text(""), Blob([]), Blob([0, 255])]"#
            ]],
        );
    }

    #[test]
    fn a_double_keeps_its_last_digit() {
        check(r#"{"sql":"s","params":[-8.877684982519291e198]}"#, expect!["s [Number(-8.877684982519291e198)]"]);
    }

    #[test]
    fn what_cannot_be_bound_is_named_by_its_place() {
        check(
            r#"{"sql":"s","params":[1,{"a":[1]},2]}"#,
            expect![
                "Statement Type 'object' not supported (expected null, a boolean, a number, a string or an array of bytes) for parameter 2"
            ],
        );
        for wrong in ["256", "-1", "1.5", "true", "null", "\"1\"", "[1]", "{}"] {
            check(
                &format!(r#"{{"batch":[{{"sql":"s","params":[[1,{wrong},2]]}}]}}"#),
                expect!["Statement an array that is no blob (expected whole numbers from 0 to 255) for parameter 1"],
            );
        }
    }

    #[test]
    fn a_body_of_another_shape_is_a_bad_request() {
        check("{}", expect!["BadRequest the body has neither `sql` nor `batch` (expected one of them)"]);
        check(r#"{"sql":"a","batch":[]}"#, expect!["BadRequest the body has both `sql` and `batch` (expected one of them)"]);
        check(
            r#"{"batch":[{"sql":"a"}],"params":[]}"#,
            expect!["BadRequest `params` stands beside `batch` (expected it inside each statement of the batch)"],
        );
        check(
            r#"{"sql":1}"#,
            expect!["BadRequest the body has the wrong shape: invalid type: integer `1`, expected a string at line 1 column 8"],
        );
        check(
            r#"{"sql":"a","params":{}}"#,
            expect!["BadRequest the body has the wrong shape: invalid type: map, expected an array of parameters at line 1 column 20"],
        );
        check(r#"{"batch":[{"params":[]}]}"#, expect!["BadRequest the body has the wrong shape: missing field `sql` at line 1 column 23"]);
        check(
            "[]",
            expect!["BadRequest the body has the wrong shape: invalid length 0, expected struct Body with 3 elements at line 1 column 2"],
        );
    }

    #[test]
    fn no_statement_and_a_nul_are_refused_as_d1_refuses_statements() {
        check(r#"{"batch":[]}"#, expect!["Statement No SQL statements detected."]);
        check(
            r#"{"sql":"SELECT '\u0000'"}"#,
            expect!["Statement SQL text holds a NUL character at byte 8 (bind it as a parameter instead)"],
        );
    }

    #[test]
    fn parameters_are_counted_at_the_limit() {
        let body = |n: usize| format!(r#"{{"sql":"s","params":[{}]}}"#, vec!["1"; n].join(","));
        assert_eq!(decode_rest(body(PARAMS_MAX).as_bytes()).unwrap()[0].params.len(), PARAMS_MAX);
        let error = decode_rest(body(PARAMS_MAX + 1).as_bytes()).unwrap_err();
        assert_eq!(error.message, "too many parameters for one statement (expected at most 32766)");
    }

    #[test]
    fn statements_are_counted_at_the_limit() {
        let body = |n: usize| format!("[{}]", vec![r#"{"sql":""}"#; n].join(","));
        assert_eq!(decode_binding(body(STATEMENTS_MAX).as_bytes()).unwrap().statements.len(), STATEMENTS_MAX);
        let error = decode_binding(body(STATEMENTS_MAX + 1).as_bytes()).unwrap_err();
        assert_eq!(error.message, "too many statements in one request (got 1000001, expected at most 1000000)");
    }

    #[test]
    fn a_binding_sends_one_statement_or_a_list() {
        let one = decode_binding(br#" {"sql":"a","params":[1]}"#).unwrap();
        assert!(!one.is_array && one.statements.len() == 1);
        let list = decode_binding(b"\n[{\"sql\":\"a\"}]").unwrap();
        assert!(list.is_array && list.statements.len() == 1);
        assert_eq!(decode_binding(b"[]").unwrap_err().message, "No SQL statements detected.");
    }

    fn json_of(param: &Param) -> serde_json::Value {
        match param {
            Param::Null => serde_json::Value::Null,
            Param::Number(value) => (*value).into(),
            Param::Text(text) => text.as_str().into(),
            Param::Blob(bytes) => bytes.clone().into(),
        }
    }

    fn param() -> impl Strategy<Value = Param> {
        prop_oneof![
            Just(Param::Null),
            any::<f64>().prop_filter("JSON has no others", |v| v.is_finite()).prop_map(Param::Number),
            any::<String>().prop_map(Param::Text),
            any::<Vec<u8>>().prop_map(Param::Blob),
        ]
    }

    proptest! {
        #[test]
        fn any_parameters_read_back_the_same(params in proptest::collection::vec(param(), 0..8), sql in "[^\0]*") {
            let json: Vec<_> = params.iter().map(json_of).collect();
            let body = serde_json::json!({"sql": sql, "params": json}).to_string();
            prop_assert_eq!(decode_rest(body.as_bytes()).unwrap(), vec![StatementBody { sql, params }]);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in any::<Vec<u8>>()) {
            let _ = decode_rest(&bytes);
            let _ = decode_binding(&bytes);
        }
    }
}
