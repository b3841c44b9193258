//! Which crate may depend on which. The table is the architecture; ARCHITECTURE.md says why.

use toml::{Table, Value};

use super::{Finding, tree::Tree};

/// Crate, and the crates of ours that it may depend on; lowest first.
const TABLE: [(&str, &[&str]); 20] = [
    ("base", &[]),
    ("ann", &[]),
    ("store", &["base"]),
    ("outbound", &["base"]),
    ("sqlite", &["base"]),
    ("log", &["base", "sqlite", "store"]),
    ("ai", &["base", "outbound"]),
    ("d1", &["base", "sqlite", "log", "outbound"]),
    ("kv", &["base", "d1", "store"]),
    ("r2", &["base", "d1", "store"]),
    ("vectorize", &["base", "d1", "ann", "store"]),
    ("search", &["base", "d1", "r2", "vectorize", "ai", "outbound"]),
    ("ledger", &["base", "d1", "store"]),
    ("directory", &["base", "d1", "ledger", "ai", "outbound"]),
    ("corpus", &["base", "d1", "r2", "ledger", "vectorize", "ai"]),
    ("api", &["base"]),
    ("server", SERVER),
    // `serve` fills in the configuration of the layers below the server, so it names their types.
    ("hearth", &["server", "api", "base", "d1", "log"]),
    ("testkit", TOOL),
    ("xtask", TOOL),
];

/// The server is the composition root: it may use everything below it.
const SERVER: &[&str] = &[
    "base",
    "ann",
    "store",
    "outbound",
    "sqlite",
    "log",
    "ai",
    "d1",
    "kv",
    "r2",
    "vectorize",
    "search",
    "ledger",
    "directory",
    "corpus",
    "api",
];

/// Crates that no one builds on may use everything, each other's tools too.
const TOOL: &[&str] = &["*"];
/// Tools outside `crates/`.
const TOOLS: [&str; 3] = ["conformance", "benches", "fuzz"];

/// Checks every manifest against the table and the rules for manifests.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(ours) = workspace_crates(tree, &mut findings) else {
        return findings;
    };
    for file in tree.manifests() {
        let name = file.crate_name();
        let manifest = match file.text.parse::<Table>() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.push(Finding::error(&file.path, 0, format!("not TOML: {}", error.message()), "mend the manifest"));
                continue;
            }
        };
        let Some(allowed) = allowed(name) else {
            findings.push(Finding::error(
                &file.path,
                0,
                format!("crate `{name}` is not in the table of crates"),
                "add it, with its edges, to ARCHITECTURE.md and to TABLE in xtask/src/tidy/edges.rs",
            ));
            continue;
        };
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace")) == Some(&Value::Boolean(true));
        if !inherits {
            findings.push(Finding::error(
                &file.path,
                0,
                "the workspace's lints are not inherited",
                "add `[lints]` with `workspace = true`",
            ));
        }
        for (section, dependency, value) in dependencies(&manifest) {
            check_dependency(&file.path, name, allowed, &ours, (section, dependency, value), &mut findings);
        }
    }
    findings
}

fn check_dependency(
    path: &str,
    name: &str,
    allowed: &[&str],
    ours: &[String],
    (section, dependency, value): (&str, &str, &Value),
    findings: &mut Vec<Finding>,
) {
    if value.get("workspace") != Some(&Value::Boolean(true)) {
        findings.push(Finding::error(
            path,
            0,
            format!("`{dependency}` in [{section}] has a version or path of its own"),
            format!("name it once in [workspace.dependencies] of the root and write `{dependency}.workspace = true` here"),
        ));
    }
    if !ours.iter().any(|own| own == dependency) || allowed.contains(&"*") || allowed.contains(&dependency) {
        return;
    }
    if dependency == "testkit" && section.ends_with("dev-dependencies") {
        return;
    }
    let expected = if allowed.is_empty() { "none of ours".to_owned() } else { allowed.join(", ") };
    findings.push(Finding::error(
        path,
        0,
        format!("crate `{name}` depends on `{dependency}` in [{section}] (expected {expected})"),
        "move what is shared into a crate that both may use, or pass it in through a port; a new edge is a change of its own, \
         with its reason, to ARCHITECTURE.md and to TABLE in xtask/src/tidy/edges.rs",
    ));
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    if TOOLS.contains(&name) {
        return Some(TOOL);
    }
    TABLE.iter().find(|(own, _)| *own == name).map(|(_, allowed)| *allowed)
}

/// Names under which the root manifest offers our own crates.
fn workspace_crates(tree: &Tree, findings: &mut Vec<Finding>) -> Option<Vec<String>> {
    let root = tree.get("Cargo.toml").and_then(|file| file.text.parse::<Table>().ok());
    let dependencies = root.as_ref().and_then(|root| root.get("workspace")?.get("dependencies")?.as_table());
    let Some(dependencies) = dependencies else {
        findings.push(Finding::error("Cargo.toml", 0, "no [workspace.dependencies] could be read", "mend the root manifest"));
        return None;
    };
    Some(dependencies.iter().filter(|(_, value)| value.get("path").is_some()).map(|(name, _)| name.clone()).collect())
}

/// Every dependency of a manifest with the section that it stands in, also those for one target only.
fn dependencies(manifest: &Table) -> Vec<(&'static str, &str, &Value)> {
    const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(targets)
        .flat_map(|table| SECTIONS.into_iter().filter_map(|section| Some((section, table.get(section)?.as_table()?))))
        .flat_map(|(section, table)| table.iter().map(move |(name, value)| (section, name.as_str(), value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "[workspace.dependencies]\nbase = { path = \"crates/base\" }\nd1 = { path = \"crates/d1\" }\ntestkit = { path = \"crates/testkit\" }\nserde = \"1\"\n";
    const LINTS: &str = "\n[lints]\nworkspace = true\n";

    fn findings(path: &str, manifest: &str) -> Vec<String> {
        let manifest = format!("{manifest}{LINTS}");
        check(&Tree::of(&[("Cargo.toml", ROOT), (path, &manifest)])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn an_edge_outside_the_table_is_found_in_every_section() {
        let message = |section: &str| vec![format!("crate `api` depends on `d1` in [{section}] (expected base)")];
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            assert_eq!(findings("crates/api/Cargo.toml", &format!("[{section}]\nd1.workspace = true")), message(section));
            assert_eq!(
                findings("crates/api/Cargo.toml", &format!("[target.'cfg(unix)'.{section}]\nd1 = {{ workspace = true }}")),
                message(section)
            );
        }
        assert_eq!(
            findings("crates/base/Cargo.toml", "[dependencies]\nd1.workspace = true"),
            ["crate `base` depends on `d1` in [dependencies] (expected none of ours)"]
        );
    }

    #[test]
    fn allowed_edges_and_tools_pass() {
        assert!(findings("crates/api/Cargo.toml", "[dependencies]\nbase.workspace = true\nserde.workspace = true").is_empty());
        assert!(findings("crates/api/Cargo.toml", "[dev-dependencies]\ntestkit.workspace = true").is_empty());
        assert!(findings("conformance/Cargo.toml", "[dependencies]\nd1.workspace = true\ntestkit.workspace = true").is_empty());
        assert!(findings("crates/testkit/Cargo.toml", "[dependencies]\nd1.workspace = true").is_empty());
    }

    #[test]
    fn testkit_is_for_tests_only() {
        assert_eq!(
            findings("crates/api/Cargo.toml", "[dependencies]\ntestkit.workspace = true"),
            ["crate `api` depends on `testkit` in [dependencies] (expected base)"]
        );
    }

    #[test]
    fn a_version_of_one_s_own_a_crate_without_a_row_and_missing_lints_are_found() {
        assert_eq!(
            findings("crates/api/Cargo.toml", "[dependencies]\nserde = \"1\""),
            ["`serde` in [dependencies] has a version or path of its own"]
        );
        assert_eq!(findings("crates/new/Cargo.toml", ""), ["crate `new` is not in the table of crates"]);
        let bare = check(&Tree::of(&[("Cargo.toml", ROOT), ("crates/api/Cargo.toml", "[package]\nname = \"hearth-api\"\n")]));
        assert_eq!(bare[0].message, "the workspace's lints are not inherited");
    }

    #[test]
    fn the_table_has_no_circle() {
        for (at, (name, allowed)) in TABLE.iter().enumerate() {
            for edge in *allowed {
                let lower = TABLE[..at].iter().any(|(own, _)| own == edge);
                assert!(*edge == "*" || lower, "`{name}` may use `{edge}`, which does not stand above it in the table");
            }
        }
    }
}
