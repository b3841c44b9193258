//! Fills in measured results, for a person to check.

use super::{
    literal,
    model::{Bound, Expect, Expected, Figure, File},
    print,
    run::{prepare, send},
};
use crate::backend::Backend;

/// Figures that are filled in where a result names none.
const DEFAULT: [Figure; 2] = [Figure::RowsRead, Figure::RowsWritten];
/// Result rows that are written out; of more only the number is kept.
const ROWS_MAX: usize = 60;

/// The text of the file with every expectation that does not hold replaced by what `backend` gave.
/// Comments, layout and expectations that hold stay as they are. A case that says that it does not hold
/// on this backend is left alone.
///
/// # Errors
/// A setup that fails, by case.
pub fn update(file: &File, text: &str, backend: &mut dyn Backend) -> Result<String, String> {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let mut changes = Vec::new();
    let on = backend.name();
    for case in file.cases.iter().filter(|case| !case.skips.iter().any(|(name, _)| name == on)) {
        prepare(file, case, backend).map_err(|error| format!("case `{}`: {error}", case.name))?;
        for request in &case.requests {
            let answer = send(request, backend).map_err(|error| format!("case `{}`: {error}", case.name))?;
            if super::compare::compare(&request.expect, &answer, backend.shape()).is_err() {
                let measured = match answer {
                    Ok(results) => {
                        let given = match &request.expect {
                            Expect::Results(given) => given.as_slice(),
                            _ => &[],
                        };
                        Expect::Results(results.iter().enumerate().map(|(n, result)| measured(given.get(n), result)).collect())
                    }
                    Err(error) => Expect::Error(error),
                };
                changes.push((request.expect_lines.clone(), print::expectation(&measured)));
            }
        }
    }
    for (range, replacement) in changes.into_iter().rev() {
        lines.splice(range, replacement);
    }
    Ok(lines.join("\n"))
}

/// A result in the form of an expectation, with the figures that `given` names.
fn measured(given: Option<&Expected>, result: &sqlite::StatementResult) -> Expected {
    let named: Vec<Figure> = given.map(|given| given.figures.iter().map(|(figure, _)| *figure).collect()).unwrap_or_default();
    let mut figures = if named.is_empty() { DEFAULT.to_vec() } else { named };
    if result.rows.len() > ROWS_MAX && !figures.contains(&Figure::Rows) {
        figures.push(Figure::Rows);
    }
    let counted = figures.contains(&Figure::Rows);
    let columns = match given {
        Some(given) => given.columns.is_some(),
        None => !result.rows.is_empty() && literal::show_names(&result.columns).len() < 100,
    };
    Expected {
        columns: columns.then(|| result.columns.clone()),
        rows: if counted { Vec::new() } else { result.rows.clone() },
        figures: figures.into_iter().map(|figure| (figure, Bound::exactly(figure.of(result)))).collect(),
    }
}
