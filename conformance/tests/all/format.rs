//! The format: what is read is what was written, a wrong line is named, and a wrong answer is seen.

use conformance::{
    backend::{Backend, Shape},
    corpus::{self, Bound, Case, Expect, Expected, Figure, File, Item, Request, Setup},
};
use proptest::prelude::*;
use sqlite::{Batch, Meta, StatementResult, Value};

/// Answers every request with the same result.
struct Fixed {
    shape: Shape,
    answer: Result<Vec<StatementResult>, String>,
}

impl Backend for Fixed {
    fn name(&self) -> &'static str {
        "in-process"
    }
    fn shape(&self) -> Shape {
        self.shape
    }
    fn fresh(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn run(&mut self, _: &Batch) -> Result<Vec<StatementResult>, String> {
        self.answer.clone()
    }
}

fn result(columns: &[&str], rows: &[&[Value]]) -> StatementResult {
    StatementResult {
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        rows: rows.iter().map(|row| row.to_vec()).collect(),
        meta: Meta { rows_read: 3, ..Meta::default() },
    }
}

/// What a case with this expectation says about an answer: `None` if it holds.
fn judge(expectation: &str, shape: Shape, answer: Result<Vec<StatementResult>, String>) -> Option<String> {
    let file = corpus::parse("x.sqltest", &format!("= c\n> SELECT 1\n{expectation}\n")).unwrap();
    let report = corpus::run(&file, &mut Fixed { shape, answer }, "");
    report.failures.first().map(|failure| failure.message.clone())
}

#[test]
fn every_kind_of_difference_is_seen() {
    let one = || Ok(vec![result(&["a"], &[&[Value::Integer(1)]])]);
    let exact = |expectation: &str| judge(expectation, Shape::Exact, one());
    assert_eq!(exact("- a\n| 1\n~ rows_read=3 changes=0"), None);
    assert_eq!(exact("~ rows=1 rows_read=1..3"), None);
    for wrong in [
        "- b\n| 1",
        "| 2",
        "| 1.0",
        "| \"1\"",
        "| 1, 1",
        "| 1\n| 1",
        "~ rows_read=3",
        "| 1\n~ rows_read=2",
        "~ rows=2",
        "| 1\n~ changed_db=true",
    ] {
        assert!(exact(wrong).is_some(), "{wrong}");
    }
    assert_eq!(exact("! no"), Some("it succeeded\n  expected the error: no".to_owned()));
    assert_eq!(exact("| 1\n~ rows_read=3\n~ rows=0"), Some("1 results came (expected 2)".to_owned()));
    let failed = |expectation: &str| judge(expectation, Shape::Exact, Err("no such table: t: SQLITE_ERROR".to_owned()));
    assert_eq!(failed("! no such table: t: SQLITE_ERROR"), None);
    assert!(failed("! no such table: t").is_some(), "an error is compared as a whole");
    assert!(failed("| 1").is_some());
}

#[test]
fn json_loses_what_json_loses_and_nothing_else() {
    let json = |expectation: &str, value: Value| judge(expectation, Shape::Json, Ok(vec![result(&["a"], &[&[value]])]));
    assert_eq!(json("| 1.0", Value::Integer(1)), None);
    assert_eq!(json("| 9007199254740993", Value::Integer(9_007_199_254_740_992)), None);
    assert_eq!(json("| inf", Value::Null), None);
    for (expectation, value) in [
        ("| null", Value::Integer(0)),
        ("| 1", Value::Text("1".into())),
        ("| \"\"", Value::Null),
        ("| x\"00\"", Value::Text("\0".into())),
        ("| 1", Value::Null),
    ] {
        assert!(json(expectation, value).is_some(), "{expectation}");
    }
}

#[test]
fn objects_keep_the_last_of_two_columns_of_a_name() {
    let got = || Ok(vec![result(&["a"], &[&[Value::Integer(2)]])]);
    assert_eq!(judge("- a, a\n| 1, 2", Shape::Objects, got()), None);
    assert!(judge("- a, a\n| 2, 1", Shape::Objects, got()).is_some());
    assert!(judge("- a, b\n| 2, 2", Shape::Objects, got()).is_some());
}

#[test]
fn a_wrong_line_is_named() {
    for (text, line, part) in [
        ("> SELECT 1\n", 1, "stands below a case's name"),
        ("= c\n", 1, "has no request"),
        ("= c\n> SELECT 1\n", 2, "expects nothing"),
        ("= c\n> SELECT 1\n| 1\n= c\n> SELECT 1\n| 1\n", 4, "two cases are called"),
        ("= C\n", 1, "is no name"),
        ("= c\n@ nope\n", 2, "no setup is called `nope`"),
        ("= c\n% sqlite because\n", 2, "`%` takes a backend"),
        ("= c\n% rest\n", 2, "`%` takes a backend"),
        ("= c\n> SELECT 1\n! a\n| 1\n", 4, "must fail gives no rows"),
        ("= c\n> SELECT 1\n| 1\n! a\n", 4, "an error is all"),
        ("= c\n> SELECT 1\n| one\n", 3, "is no value"),
        ("= c\n> SELECT 1\n| 1 2\n", 3, "is no value"),
        ("= c\n> SELECT 1\n| x\"0\"\n", 3, "no hex of whole bytes"),
        ("= c\n> SELECT 1\n~ rows_red=1\n", 3, "is no figure"),
        ("= c\n> SELECT 1\n~ rows=1 rows=1\n", 3, "given twice"),
        ("= c\n> SELECT 1\n~ rows=2..1\n", 3, "is no figure"),
        ("= c\n> SELECT {{many:x:2}}\n", 2, "no such template"),
        ("= c\n>SELECT 1\n", 2, "is not a line of the format"),
        ("  SELECT 1\n", 1, "continues SQL"),
        ("= c\n? [1]\n", 2, "stands below a `>`, `&` or `+` line"),
        ("= c\n> SELECT 1\n| 1\n+ SELECT 2\n", 4, "stands below a `>`, `&` or `+` line"),
        ("= c\n> SELECT 1\n| 1\n* late\n", 4, "before all cases"),
        ("= c\n> SELECT 1\n| 1\n: SELECT 1\n", 4, "before the first request"),
    ] {
        let error = corpus::parse("x.sqltest", text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn update_writes_what_was_measured_and_keeps_the_rest() {
    let text = "# kept\n= c\n> SELECT 1\n- a\n| 2\n~ rows_read=9\n\n= d\n> SELECT\n  1\n";
    let mut backend = Fixed { shape: Shape::Exact, answer: Ok(vec![result(&["a"], &[&[Value::Integer(1)]])]) };
    let file = corpus::parse_unfinished("x.sqltest", text).unwrap();
    let updated = corpus::update(&file, text, &mut backend).unwrap();
    let expected = "# kept\n= c\n> SELECT 1\n- a\n| 1\n~ rows_read=3\n\n= d\n> SELECT\n  1\n- a\n| 1\n~ rows_read=3 rows_written=0\n";
    assert_eq!(updated, expected);
    assert!(corpus::run(&corpus::parse("x.sqltest", &updated).unwrap(), &mut backend, "").failures.is_empty());
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        any::<f64>().prop_filter("SQLite has no NaN", |number| !number.is_nan()).prop_map(Value::Real),
        any::<String>().prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Blob),
    ]
}

fn sql() -> impl Strategy<Value = String> {
    prop::collection::vec("[ -z|~é]{0,30}", 1..3).prop_map(|lines| lines.join("\n"))
}

fn expect() -> impl Strategy<Value = Expect> {
    let figures = prop::sample::subsequence(Figure::ALL.to_vec(), 1..4)
        .prop_flat_map(|figures| figures.into_iter().map(|figure| (Just(figure), any::<(i64, i64)>())).collect::<Vec<_>>())
        .prop_map(|figures| figures.into_iter().map(|(figure, (a, b))| (figure, bound(figure, a, b))).collect());
    let columns = prop::option::of(prop::collection::vec(any::<String>(), 0..4));
    let rows = prop::collection::vec(prop::collection::vec(value(), 1..4), 0..3);
    let result = (columns, rows, figures).prop_map(|(columns, rows, figures)| Expected { columns, rows, figures });
    prop_oneof!["[ -z|~é]{0,40}".prop_map(Expect::Error), prop::collection::vec(result, 1..4).prop_map(Expect::Results)]
}

fn bound(figure: Figure, a: i64, b: i64) -> Bound {
    let (a, b) = if figure == Figure::ChangedDb { (a & 1, a & 1) } else { (a, b) };
    Bound { min: a.min(b), max: a.max(b) }
}

fn request() -> impl Strategy<Value = Request> {
    let params = prop::option::of(Just("[1, \"x\"]".to_owned()));
    let items = prop::collection::vec((sql(), params).prop_map(|(sql, params)| Item { sql, params }), 1..3);
    (any::<bool>(), items, expect()).prop_map(|(prepared, items, expect)| Request { line: 0, prepared, items, expect, expect_lines: 0..0 })
}

fn file() -> impl Strategy<Value = File> {
    let case = (prop::collection::vec(sql(), 0..2), any::<bool>(), any::<bool>(), prop::collection::vec(request(), 1..3));
    (prop::collection::vec(sql(), 0..3), prop::collection::vec(case, 0..3)).prop_map(|(setup, cases)| File {
        name: "x.sqltest".to_owned(),
        setups: vec![Setup { name: "base".to_owned(), sql: setup }],
        cases: cases
            .into_iter()
            .enumerate()
            .map(|(number, (setup, uses, skip, requests))| Case {
                name: format!("case_{number}"),
                line: 0,
                uses: if uses { vec!["base".to_owned()] } else { Vec::new() },
                setup,
                skips: if skip { vec![("rest".to_owned(), "for a reason".to_owned())] } else { Vec::new() },
                requests,
            })
            .collect(),
    })
}

/// Lines are where something stood, not what it says.
fn without_lines(mut file: File) -> File {
    for case in &mut file.cases {
        case.line = 0;
        for request in &mut case.requests {
            request.line = 0;
            request.expect_lines = 0..0;
        }
    }
    file
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(file in file()) {
        let text = file.to_string();
        let read = corpus::parse("x.sqltest", &text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(without_lines(read), file, "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "([=@%:>&+?|~!*# -]{0,2} ?[ -~é\n]{0,30}\n){0,8}") {
        let _ = corpus::parse_unfinished("x.sqltest", &text);
    }

    #[test]
    fn no_template_makes_expand_panic(text in "[{}:a-z0-9#]{0,30}") {
        let _ = corpus::expand(&text);
    }
}
