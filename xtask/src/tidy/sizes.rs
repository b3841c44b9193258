//! Files and functions small enough to be read at once.

use super::{Finding, functions::functions, tree::Tree};

const FILE_LINES_MAX: usize = 1_000;
const FILE_LINES_WARN: usize = 500;
const FUNCTION_LINES_MAX: usize = 100;
const FUNCTION_LINES_WARN: usize = 70;
/// What counts as source.
const SOURCE: [&str; 6] = ["rs", "mjs", "js", "ts", "py", "sqltest"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| SOURCE.contains(&file.extension())) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_WARN {
            findings.push(Finding {
                warning: lines <= FILE_LINES_MAX,
                ..Finding::error(
                    &file.path,
                    0,
                    format!("{lines} lines (expected at most {FILE_LINES_WARN}, never over {FILE_LINES_MAX})"),
                    "split it: one file per feature",
                )
            });
        }
    }
    for file in tree.rust() {
        for function in functions(&file.text).into_iter().filter(|function| function.lines > FUNCTION_LINES_WARN) {
            findings.push(Finding {
                warning: function.lines <= FUNCTION_LINES_MAX,
                ..Finding::error(
                    &file.path,
                    function.line,
                    format!(
                        "function `{}` has {} lines (expected at most {FUNCTION_LINES_WARN}, never over {FUNCTION_LINES_MAX})",
                        function.name, function.lines
                    ),
                    "name its parts and move them into functions of their own",
                )
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(path: &str, text: &str) -> Vec<bool> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.warning).collect()
    }

    #[test]
    fn sizes_warn_first_and_fail_later() {
        let file = |lines: usize| check_one("crates/a/src/lib.rs", &"\n".repeat(lines));
        assert_eq!((file(500), file(501), file(1_000), file(1_001)), (vec![], vec![true], vec![true], vec![false]));
        let function = |lines: usize| check_one("crates/a/src/lib.rs", &format!("fn f() {{{}}}", "\n".repeat(lines - 1)));
        assert_eq!((function(70), function(71), function(100), function(101)), (vec![], vec![true], vec![true], vec![false]));
        assert!(check_one("docs/long.md", &"\n".repeat(2_000)).is_empty());
    }
}
