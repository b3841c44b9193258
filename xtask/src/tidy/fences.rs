//! What only certain crates may touch.

use super::{Finding, lexer::code_only, tree::Tree};

/// A name that code may use in some crates only.
struct Fence {
    /// As it stands in code or, before `::`, as a dependency.
    name: &'static str,
    crates: &'static [&'static str],
    hint: &'static str,
}

const FENCES: [Fence; 6] = [
    Fence { name: "axum", crates: &["server"], hint: "only `server` serves HTTP; return data and let a handler convert it" },
    // `benches` holds the engine against bare SQLite.
    Fence {
        name: "rusqlite",
        crates: &["sqlite", "testkit", "benches"],
        hint: "only `sqlite` knows SQLite; add what is missing to its interface",
    },
    Fence {
        name: "libsqlite3_sys",
        crates: &["sqlite", "testkit"],
        hint: "only `sqlite` knows SQLite; add what is missing to its interface",
    },
    Fence { name: "SystemTime::now", crates: CLOCKS, hint: "take the time from `Ctx` or a `base::Clock`, so that a test can set it" },
    Fence { name: "Instant::now", crates: CLOCKS, hint: "take the time from `Ctx` or a `base::Clock`, so that a test can set it" },
    Fence { name: "getrandom", crates: &["base"], hint: "take random bytes from `Ctx` or a `base::Rng`, so that a test can set them" },
];
/// The port itself, and what measures the machine.
const CLOCKS: &[&str] = &["base", "testkit", "benches", "xtask"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let code = code_only(&file.text);
        let fences = FENCES.iter().filter(|fence| !fence.crates.contains(&file.crate_name()));
        for fence in fences.filter(|fence| fence.name != "Instant::now" || !imports_tokio_instant(&code)) {
            for (number, _) in code.lines().enumerate().filter(|(_, line)| names(line, fence.name)) {
                findings.push(finding(&file.path, number + 1, fence));
            }
        }
    }
    for file in tree.manifests() {
        for fence in FENCES.iter().filter(|fence| !fence.crates.contains(&file.crate_name())) {
            let package = fence.name.replace('_', "-");
            let depends = |line: &str| line.trim_start().strip_prefix(&package).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
            for (number, _) in file.text.lines().enumerate().filter(|(_, line)| depends(line)) {
                findings.push(finding(&file.path, number + 1, fence));
            }
        }
    }
    findings
}

/// Whether the file's `Instant` is tokio's, which drives timers and which a test can stop and move.
fn imports_tokio_instant(code: &str) -> bool {
    code.split("use ").skip(1).filter_map(|rest| rest.split(';').next()).any(|path| path.starts_with("tokio::") && names(path, "Instant"))
}

fn finding(path: &str, line: usize, fence: &Fence) -> Finding {
    Finding::error(path, line, format!("`{}` is used here (expected only in: {})", fence.name, fence.crates.join(", ")), fence.hint)
}

/// Whether `line` holds `name` as a whole path.
fn names(line: &str, name: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(name).any(|(at, _)| !part(line[..at].chars().next_back()) && !part(line[at + name.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn a_fenced_name_is_found_in_code_and_manifests_but_not_in_words() {
        assert_eq!(count("crates/d1/src/lib.rs", "use axum::Router;\nuse rusqlite::Connection;\n"), 2);
        assert_eq!(count("crates/d1/src/lib.rs", "let t = std::time::Instant::now();\n"), 1);
        assert_eq!(count("crates/d1/tests/all.rs", "let t = std::time::SystemTime::now();\n"), 1);
        assert_eq!(count("crates/d1/Cargo.toml", "[dependencies]\nlibsqlite3-sys.workspace = true\naxum = { workspace = true }\n"), 2);
        assert_eq!(count("crates/d1/src/lib.rs", "// axum is for the server\nlet s = \"rusqlite\"; let axum_like = 1;\n"), 0);
        assert_eq!(
            count(
                "crates/server/src/body.rs",
                "use tokio::{\n    net::TcpStream,\n    time::{Instant, sleep},\n};\nlet t = Instant::now();\n"
            ),
            0
        );
        assert_eq!(count("crates/server/src/body.rs", "use tokio::time::sleep;\nuse std::time::Instant;\nlet t = Instant::now();\n"), 1);
        assert_eq!(count("crates/server/src/lib.rs", "use axum::Router;\n"), 0);
        assert_eq!(count("crates/sqlite/src/conn.rs", "use rusqlite::Connection;\n"), 0);
        assert_eq!(count("xtask/src/date.rs", "Instant::now()\n"), 0);
    }
}
