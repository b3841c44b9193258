//! Compares what came with what must come.

use sqlite::{StatementResult, Value};

use super::{
    literal,
    model::{Expect, Expected, Figure, ShownFigure},
};
use crate::backend::Shape;

/// Characters of a value that a message shows.
const SHOWN_CHARS_MAX: usize = 300;
/// Rows that a message shows.
const SHOWN_ROWS_MAX: usize = 20;

/// What a backend answered: results in order, or the exact error text.
pub(super) type Answer = Result<Vec<StatementResult>, String>;

/// Compares a whole answer.
///
/// # Errors
/// Every difference, one a line: got, then expected.
pub(super) fn compare(expect: &Expect, answer: &Answer, shape: Shape) -> Result<(), String> {
    match (expect, answer) {
        (Expect::Missing, _) => Err("nothing is expected, so nothing can be compared".to_owned()),
        (Expect::Error(expected), Err(got)) if expected == got => Ok(()),
        (Expect::Error(expected), Err(got)) => Err(format!("error\n  got:      {}\n  expected: {}", cut(got), cut(expected))),
        (Expect::Error(expected), Ok(_)) => Err(format!("it succeeded\n  expected the error: {}", cut(expected))),
        (Expect::Results(_), Err(got)) => Err(format!("it failed: {}", cut(got))),
        (Expect::Results(expected), Ok(got)) if expected.len() != got.len() => {
            Err(format!("{} results came (expected {})", got.len(), expected.len()))
        }
        (Expect::Results(expected), Ok(got)) => {
            let numbered = expected.iter().zip(got).enumerate();
            let differences: Vec<String> = numbered
                .flat_map(|(number, (expected, got))| {
                    let prefix =
                        if answer.as_ref().is_ok_and(|all| all.len() > 1) { format!("result {}: ", number + 1) } else { String::new() };
                    result(expected, got, shape).into_iter().map(move |text| format!("{prefix}{text}"))
                })
                .collect();
            if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
        }
    }
}

fn result(expected: &Expected, got: &StatementResult, shape: Shape) -> Vec<String> {
    let mut differences = Vec::new();
    if let Some(columns) = &expected.columns
        && !same_columns(columns, got, shape)
    {
        let (got, expected) = (literal::show_names(&got.columns), literal::show_names(columns));
        differences.push(format!("columns\n  got:      {}\n  expected: {}", cut(&got), cut(&expected)));
    }
    let counted = expected.figures.iter().any(|(figure, _)| *figure == Figure::Rows);
    if !counted && !same_rows(expected, got, shape) {
        differences.push(format!("rows\n  got:\n{}  expected:\n{}", rows(&got.rows), rows(&expected.rows)));
    }
    for &(figure, bound) in &expected.figures {
        let value = figure.of(got);
        if !bound.holds(value) {
            let got = ShownFigure(figure, super::Bound::exactly(value));
            differences.push(format!("{got} (expected {})", ShownFigure(figure, bound)));
        }
    }
    differences
}

fn same_columns(expected: &[String], got: &StatementResult, shape: Shape) -> bool {
    match shape {
        Shape::Exact | Shape::Json => expected == got.columns,
        // Objects show no columns without a row, each name once, and names that are numbers first.
        Shape::Objects => got.rows.is_empty() || sorted_once(expected) == sorted_once(&got.columns),
    }
}

fn sorted_once(names: &[String]) -> Vec<&String> {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort();
    names.dedup();
    names
}

fn same_rows(expected: &Expected, got: &StatementResult, shape: Shape) -> bool {
    if expected.rows.len() != got.rows.len() {
        return false;
    }
    let mut pairs = expected.rows.iter().zip(&got.rows);
    match (shape, &expected.columns) {
        (Shape::Objects, Some(columns)) => pairs.all(|(expected, row)| {
            let last = |name: &String| columns.iter().rposition(|column| column == name).and_then(|at| expected.get(at));
            got.columns.iter().zip(row).all(|(name, value)| last(name).is_some_and(|expected| same(expected, value, shape)))
        }),
        _ => pairs.all(|(expected, row)| expected.len() == row.len() && expected.iter().zip(row).all(|(a, b)| same(a, b, shape))),
    }
}

/// Whether two values are the same, or become the same in JSON if that is where the answer came from.
fn same(expected: &Value, got: &Value, shape: Shape) -> bool {
    if shape == Shape::Exact {
        // A sign of zero matters as little as SQL says.
        return expected == got;
    }
    match (number(expected), number(got)) {
        (Some(expected), Some(got)) => expected == got,
        // JSON has no infinity.
        (Some(expected), None) if expected.is_infinite() => *got == Value::Null,
        _ => expected == got,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "JSON numbers are doubles to every client, and this loses what they lose")]
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

fn rows(rows: &[Vec<Value>]) -> String {
    let mut text: String = rows.iter().take(SHOWN_ROWS_MAX).map(|row| format!("    | {}\n", cut(&literal::show_values(row)))).collect();
    if rows.len() > SHOWN_ROWS_MAX {
        text += &format!("    … {} more\n", rows.len() - SHOWN_ROWS_MAX);
    }
    if rows.is_empty() { "    (none)\n".to_owned() } else { text }
}

fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() { format!("{shown}… ({} bytes)", text.len()) } else { shown }
}
