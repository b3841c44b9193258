//! Every statement of the contract that this release serves has a test that carries its id.

use super::{Finding, tree::Tree};

/// One id a line with a few words, for example `D1.06 columns per table`.
const LIST: &str = "conformance/statements.txt";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(list) = tree.get(LIST) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (number, line) in list.text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (id, what) = line.split_once(' ').unwrap_or((line, ""));
        let slug = slug(id);
        if slug.is_empty() || what.is_empty() {
            findings.push(Finding::error(LIST, number + 1, format!("not a statement (got `{line}`)"), "write `D1.06 what it says`"));
        } else if !tree.files.iter().any(|file| tests(&file.path) && names(&file.text, &slug)) {
            let hint = format!("name a test or a case of the corpus `{slug}_…`; CONTRIBUTING.md shows how");
            findings.push(Finding::error(LIST, number + 1, format!("no test carries the id {id} ({what})"), hint));
        }
    }
    findings
}

/// `d1_06` for `D1.06`; empty if the id has another shape.
fn slug(id: &str) -> String {
    match id.split_once('.') {
        Some((chapter, number)) if !chapter.is_empty() && number.len() == 2 && number.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{}_{number}", chapter.to_lowercase())
        }
        _ => String::new(),
    }
}

fn tests(path: &str) -> bool {
    path.ends_with(".rs") || path.ends_with(".sqltest") || path.ends_with(".mjs")
}

/// Whether the text holds the slug at the start of a name. `_` and letters before it would be another name.
fn names(text: &str, slug: &str) -> bool {
    text.match_indices(slug).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || c == '_')) && text[at + slug.len()..].starts_with('_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_without_a_test_is_found() {
        let list = "# statements\nD1.06 columns\nD1.07 values\nnonsense\n";
        let findings =
            check(&Tree::of(&[(LIST, list), ("crates/sqlite/src/a.rs", "fn d1_06_a_column_too_many() {}\n"), ("docs/a.md", "d1_07_")]));
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, ["no test carries the id D1.07 (values)", "not a statement (got `nonsense`)"]);
    }
}
