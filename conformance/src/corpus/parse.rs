//! Reads a `.sqltest` file. Every line begins with one character that says what it is.

use std::{collections::HashSet, fmt};

use super::{
    literal,
    model::{Bound, Case, Expect, Expected, Figure, File, Item, Request, Setup},
    template::expand,
};
use crate::backend;

/// What is wrong with a file, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The file's name.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What was got and what was expected.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads a file in which every request says what it must give.
///
/// # Errors
/// The first line that does not follow the format, or a request without an expectation: such a case
/// could not fail.
pub fn parse(name: &str, text: &str) -> Result<File, ParseError> {
    let file = parse_unfinished(name, text)?;
    let missing = file.cases.iter().flat_map(|case| &case.requests).find(|request| request.expect == Expect::Missing);
    match missing {
        Some(request) => Err(ParseError {
            file: name.to_owned(),
            line: request.line,
            message: "the request expects nothing, so it cannot fail (expected `-`, `|`, `~` or `!` lines; UPDATE_EXPECT=1 fills in what was measured)"
                .to_owned(),
        }),
        None => Ok(file),
    }
}

/// As [`parse`], and lets requests without an expectation pass, for [`super::update`].
///
/// # Errors
/// The first line that does not follow the format.
pub fn parse_unfinished(name: &str, text: &str) -> Result<File, ParseError> {
    let mut parser = Parser { file: File { name: name.to_owned(), setups: Vec::new(), cases: Vec::new() }, last: Last::Nothing };
    let mut number = 0;
    for line in text.split('\n') {
        number += 1;
        parser.line(number, line).map_err(|message| ParseError { file: name.to_owned(), line: number, message })?;
    }
    parser.check().map_err(|(line, message)| ParseError { file: name.to_owned(), line, message })?;
    Ok(parser.file)
}

/// What the line before was: decides what may follow, and what an indented line continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Setup,
    SetupSql,
    Case,
    CaseSql,
    Item,
    Params,
    Expect,
}

struct Parser {
    file: File,
    last: Last,
}

impl Parser {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if let Some(more) = line.strip_prefix("  ") {
            return self.continued(more);
        }
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let (sigil, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
        let rest = match rest.strip_prefix(' ') {
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => {
                return Err(format!(
                    "`{}` is not a line of the format (expected one of `# * = @ % : > & + ? - | ~ !` and a space)",
                    short(line)
                ));
            }
        };
        match sigil {
            "*" => self.setup(rest),
            "=" => self.case(number, rest),
            "@" | "%" => self.modifier(sigil, rest),
            ":" => self.setup_sql(rest),
            ">" | "&" => self.request(number, sigil == "&", rest),
            "+" | "?" => self.item(number, sigil, rest),
            "-" | "|" | "~" | "!" => self.expect(number, sigil, rest),
            _ => Err(format!("no line begins with `{sigil}` (expected one of `# * = @ % : > & + ? - | ~ !`)")),
        }
    }

    fn setup(&mut self, name: &str) -> Result<(), String> {
        if !self.file.cases.is_empty() {
            return Err("a named setup stands before all cases".to_owned());
        }
        self.file.setups.push(Setup { name: identifier(name)?, sql: Vec::new() });
        self.last = Last::Setup;
        Ok(())
    }

    fn case(&mut self, number: usize, name: &str) -> Result<(), String> {
        let case =
            Case { name: identifier(name)?, line: number, uses: Vec::new(), setup: Vec::new(), skips: Vec::new(), requests: Vec::new() };
        self.file.cases.push(case);
        self.last = Last::Case;
        Ok(())
    }

    fn modifier(&mut self, sigil: &str, rest: &str) -> Result<(), String> {
        let setups: Vec<&str> = self.file.setups.iter().map(|setup| setup.name.as_str()).collect();
        let known = setups.contains(&rest);
        let case = match self.file.cases.last_mut() {
            Some(case) if self.last == Last::Case => case,
            _ => return Err(format!("a `{sigil}` line stands right below a case's name")),
        };
        if sigil == "@" {
            if !known {
                return Err(format!("no setup is called `{}` (expected one of: {})", short(rest), setups.join(", ")));
            }
            case.uses.push(rest.to_owned());
            return Ok(());
        }
        let (name, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        if !backend::NAMES.contains(&name) || reason.trim().is_empty() {
            return Err(format!("`%` takes a backend ({}) and the reason", backend::NAMES.join(", ")));
        }
        case.skips.push((name.to_owned(), reason.to_owned()));
        Ok(())
    }

    fn setup_sql(&mut self, sql: &str) -> Result<(), String> {
        let list = match self.last {
            Last::Setup | Last::SetupSql => {
                self.last = Last::SetupSql;
                self.file.setups.last_mut().map(|setup| &mut setup.sql)
            }
            Last::Case | Last::CaseSql => {
                self.last = Last::CaseSql;
                self.file.cases.last_mut().map(|case| &mut case.setup)
            }
            _ => None,
        };
        list.ok_or("a `:` line stands below a setup's or a case's name, before the first request")?.push(checked(sql)?);
        Ok(())
    }

    fn request(&mut self, number: usize, prepared: bool, sql: &str) -> Result<(), String> {
        let case = self.file.cases.last_mut().ok_or("a request stands below a case's name")?;
        let item = Item { sql: checked(sql)?, params: None };
        case.requests.push(Request { line: number, prepared, items: vec![item], expect: Expect::Missing, expect_lines: number..number });
        self.last = Last::Item;
        Ok(())
    }

    fn item(&mut self, number: usize, sigil: &str, rest: &str) -> Result<(), String> {
        let may = matches!(self.last, Last::Item | Last::Params) && (sigil == "+" || self.last == Last::Item);
        let request = self.open_request().filter(|_| may).ok_or_else(|| format!("a `{sigil}` line stands below a `>`, `&` or `+` line"))?;
        request.expect_lines = number..number;
        if sigil == "+" {
            request.items.push(Item { sql: checked(rest)?, params: None });
            self.last = Last::Item;
        } else {
            let item = request.items.last_mut().expect("a request has an item");
            item.params = Some(checked(rest)?);
            self.last = Last::Params;
        }
        Ok(())
    }

    fn expect(&mut self, number: usize, sigil: &str, rest: &str) -> Result<(), String> {
        let may = matches!(self.last, Last::Item | Last::Params | Last::Expect);
        let request = self.open_request().filter(|_| may).ok_or_else(|| format!("a `{sigil}` line stands below a request"))?;
        if request.expect == Expect::Missing {
            request.expect_lines.start = number - 1;
        }
        request.expect_lines.end = number;
        add_expectation(&mut request.expect, sigil, rest)?;
        self.last = Last::Expect;
        Ok(())
    }

    /// A line that begins with two spaces belongs to the SQL above it.
    fn continued(&mut self, more: &str) -> Result<(), String> {
        let sql = match self.last {
            Last::SetupSql => self.file.setups.last_mut().and_then(|setup| setup.sql.last_mut()),
            Last::CaseSql => self.file.cases.last_mut().and_then(|case| case.setup.last_mut()),
            Last::Item => self.open_request().and_then(|request| {
                request.expect_lines = request.expect_lines.start + 1..request.expect_lines.end + 1;
                request.items.last_mut().map(|item| &mut item.sql)
            }),
            _ => None,
        };
        let sql = sql.ok_or("an indented line continues SQL (expected `:`, `>`, `&` or `+` above it)")?;
        sql.push('\n');
        sql.push_str(&checked(more)?);
        Ok(())
    }

    fn open_request(&mut self) -> Option<&mut Request> {
        self.file.cases.last_mut()?.requests.last_mut()
    }

    /// What only the whole file shows.
    fn check(&self) -> Result<(), (usize, String)> {
        let mut names = HashSet::new();
        for setup in &self.file.setups {
            if !names.insert(&setup.name) {
                return Err((1, format!("two setups are called `{}`", setup.name)));
            }
        }
        let mut names = HashSet::new();
        for case in &self.file.cases {
            if case.requests.is_empty() {
                return Err((case.line, format!("case `{}` has no request", case.name)));
            }
            if !names.insert(&case.name) {
                return Err((case.line, format!("two cases are called `{}`", case.name)));
            }
        }
        Ok(())
    }
}

fn add_expectation(expect: &mut Expect, sigil: &str, rest: &str) -> Result<(), String> {
    if sigil == "!" {
        if *expect != Expect::Missing {
            return Err("an error is all that a request gives (expected `!` alone)".to_owned());
        }
        *expect = Expect::Error(expand(rest)?);
        return Ok(());
    }
    if *expect == Expect::Missing {
        *expect = Expect::Results(Vec::new());
    }
    let Expect::Results(results) = expect else {
        return Err("a request that must fail gives no rows or figures".to_owned());
    };
    // `-` begins a result; so does anything after a `~` line, which ends one.
    if sigil == "-" || results.last().is_none_or(|result| !result.figures.is_empty()) {
        results.push(Expected::default());
    }
    let result = results.last_mut().expect("one was pushed if there was none");
    match sigil {
        "-" => result.columns = Some(literal::names(rest)?),
        "|" => result.rows.push(literal::values(rest)?),
        _ => result.figures = figures(rest)?,
    }
    Ok(())
}

fn figures(text: &str) -> Result<Vec<(Figure, Bound)>, String> {
    let mut out: Vec<(Figure, Bound)> = Vec::new();
    for word in text.split_whitespace() {
        let wrong = || {
            format!(
                "`{word}` is no figure (expected name=value or name=min..max, with the name one of: {})",
                Figure::ALL.map(Figure::name).join(", ")
            )
        };
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        let figure = Figure::ALL.into_iter().find(|figure| figure.name() == name).ok_or_else(wrong)?;
        if out.iter().any(|(given, _)| *given == figure) {
            return Err(format!("`{name}` is given twice"));
        }
        let number = |text: &str| match (figure, text) {
            (Figure::ChangedDb, "true") => Ok(1),
            (Figure::ChangedDb, "false") => Ok(0),
            (Figure::ChangedDb, _) => Err(wrong()),
            _ => text.parse::<i64>().map_err(|_| wrong()),
        };
        let bound = match value.split_once("..") {
            Some((min, max)) => Bound { min: number(min)?, max: number(max)? },
            None => Bound::exactly(number(value)?),
        };
        if bound.min > bound.max {
            return Err(wrong());
        }
        out.push((figure, bound));
    }
    if out.is_empty() { Err("a `~` line names at least one figure".to_owned()) } else { Ok(out) }
}

fn identifier(name: &str) -> Result<String, String> {
    let fits = !name.is_empty() && name.len() <= 120 && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if fits { Ok(name.to_owned()) } else { Err(format!("`{}` is no name (expected 1 to 120 of a-z, 0-9 and _)", short(name))) }
}

/// The text itself, once its templates were seen to expand.
fn checked(text: &str) -> Result<String, String> {
    expand(text)?;
    Ok(text.to_owned())
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}
