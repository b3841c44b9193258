//! Writes what `parse` reads.

use std::fmt;

use super::{
    literal,
    model::{Case, Expect, Expected, File, Item, Request, ShownFigure},
};

/// The lines of an expectation.
pub(super) fn expectation(expect: &Expect) -> Vec<String> {
    match expect {
        Expect::Missing => Vec::new(),
        Expect::Error(text) => vec![format!("! {text}")],
        Expect::Results(results) => results.iter().flat_map(result).collect(),
    }
}

fn result(result: &Expected) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(columns) = &result.columns {
        lines.push(format!("- {}", literal::show_names(columns)).trim_end().to_owned());
    }
    for row in &result.rows {
        lines.push(format!("| {}", literal::show_values(row)).trim_end().to_owned());
    }
    if !result.figures.is_empty() {
        let figures: Vec<String> = result.figures.iter().map(|&(figure, bound)| ShownFigure(figure, bound).to_string()).collect();
        lines.push(format!("~ {}", figures.join(" ")));
    }
    lines
}

fn sql(f: &mut fmt::Formatter<'_>, sigil: &str, sql: &str) -> fmt::Result {
    writeln!(f, "{sigil} {}", sql.replace('\n', "\n  "))
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for setup in &self.setups {
            writeln!(f, "* {}", setup.name)?;
            setup.sql.iter().try_for_each(|text| sql(f, ":", text))?;
        }
        self.cases.iter().try_for_each(|case| write!(f, "\n{case}"))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "= {}", self.name)?;
        self.uses.iter().try_for_each(|name| writeln!(f, "@ {name}"))?;
        self.skips.iter().try_for_each(|(backend, reason)| writeln!(f, "% {backend} {reason}"))?;
        self.setup.iter().try_for_each(|text| sql(f, ":", text))?;
        self.requests.iter().try_for_each(|request| write!(f, "{request}"))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Item { sql: text, params }) in self.items.iter().enumerate() {
            let sigil = match (number, self.prepared) {
                (0, false) => ">",
                (0, true) => "&",
                _ => "+",
            };
            sql(f, sigil, text)?;
            if let Some(params) = params {
                writeln!(f, "? {params}")?;
            }
        }
        expectation(&self.expect).iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
