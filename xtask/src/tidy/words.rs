//! Words that tie the source to one machine or one package mirror.

use super::{Finding, tree::Tree};

/// Hosts of package registries. In two parts, so that this file does not hold them either.
const HOSTS: [(&str, &str); 9] = [
    ("registry.", "npmjs"),
    ("registry.", "npmmirror"),
    ("registry.", "yarnpkg"),
    ("npm.pkg.", "github"),
    ("index.", "crates.io"),
    ("static.", "crates.io"),
    ("files.", "pythonhosted"),
    ("pypi.", "org"),
    ("proxy.", "golang"),
];
/// First parts of absolute paths that only exist where someone builds.
const PATHS: [(&str, &str); 7] =
    [("/ho", "me/"), ("/Us", "ers/"), ("/ro", "ot/"), ("/wo", "rk/"), ("/work", "space/"), ("/tmp/", "target"), ("C:\\", "Users")];
/// The one source that a package in Cargo.lock may come from.
const CARGO_SOURCE: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.extension() != "lock") {
        for (number, line) in file.text.lines().enumerate() {
            for (a, b) in HOSTS {
                let host = format!("{a}{b}");
                if line.contains(&host) {
                    let hint = "name packages by name and version; the registry is the reader's own setting";
                    findings.push(Finding::error(&file.path, number + 1, format!("names a package registry's host (`{host}…`)"), hint));
                }
            }
            for (a, b) in PATHS {
                let path = format!("{a}{b}");
                if line.match_indices(&path).any(|(at, _)| begins_a_path(&line[..at])) {
                    let hint = "use a path relative to the repository, or a temporary folder made at run time";
                    findings.push(Finding::error(&file.path, number + 1, format!("names a path of one machine (`{path}…`)"), hint));
                }
            }
        }
    }
    findings
}

/// Whether what follows is the start of a path, not the middle of one or of a URL.
fn begins_a_path(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || "._-~/$*{}<>".contains(c)))
}

/// Every locked Rust package comes from the public registry, none from a mirror, a git host or a folder.
pub(super) fn lockfiles(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with("Cargo.lock")) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(source) = line.strip_prefix("source = ")
                && source.trim_matches('"') != CARGO_SOURCE
            {
                let hint = "depend on a published version, and lock without a mirror configured";
                findings.push(Finding::error(
                    &file.path,
                    number + 1,
                    format!("a package comes from elsewhere (got {source}, expected the public registry)"),
                    hint,
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(parts: (&str, &str)) -> String {
        format!("{}{}", parts.0, parts.1)
    }

    #[test]
    fn every_host_and_every_path_is_found() {
        for host in HOSTS {
            assert_eq!(check(&Tree::of(&[("README.md", &format!("see https://{}.org/x", joined(host)))])).len(), 1, "{host:?}");
        }
        for path in PATHS {
            assert_eq!(check(&Tree::of(&[("docs/a.md", &format!("run `{}/x`", joined(path)))])).len(), 1, "{path:?}");
        }
    }

    #[test]
    fn the_middle_of_a_path_or_url_is_no_absolute_path() {
        for before in ["conformance", "https://host", "$DIR", "./x"] {
            let text = format!("{before}{}x", joined(PATHS[3]));
            assert!(check(&Tree::of(&[("a.md", &text)])).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_lock_entry_from_elsewhere_is_found() {
        let text = format!("source = \"{CARGO_SOURCE}\"\nsource = \"git+https://example.com/x\"\n");
        let findings = lockfiles(&Tree::of(&[("Cargo.lock", &text)]));
        assert_eq!((findings.len(), findings[0].line), (1, 2));
    }
}
