//! npm packages are pinned to one version, and their lock names no host.

use serde_json::Value;

use super::{Finding, tree::Tree};

const SECTIONS: [&str; 3] = ["dependencies", "devDependencies", "optionalDependencies"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with("package.json")) {
        let package: Value = match serde_json::from_str(&file.text) {
            Ok(package) => package,
            Err(error) => {
                findings.push(Finding::error(&file.path, error.line(), format!("not JSON: {error}"), "mend the file"));
                continue;
            }
        };
        let pins = SECTIONS.into_iter().filter_map(|section| package[section].as_object()).flatten();
        for (name, version) in pins.filter(|(_, version)| !version.as_str().is_some_and(exact)) {
            findings.push(Finding::error(
                &file.path,
                0,
                format!("`{name}` is not pinned (got {version}, expected one version such as \"4.86.0\" or \"npm:{name}@4.86.0\")"),
                "write the exact version and run `npm install` to lock it",
            ));
        }
        let lock = file.path.replace("package.json", "package-lock.json");
        match tree.get(&lock) {
            None => findings.push(Finding::error(&lock, 0, "the lock file is missing", "run `npm install` in its folder and commit it")),
            Some(lock) if lock.text.contains("\"resolved\": \"http") => findings.push(Finding::error(
                &lock.path,
                0,
                "the lock names the host that each package came from",
                "set `omit-lockfile-registry-resolved=true` in .npmrc beside it and lock again",
            )),
            Some(_) => {}
        }
    }
    findings
}

/// Whether a version means exactly one release: `1.2.3`, `1.2.3-beta.1` or `npm:name@1.2.3`.
fn exact(version: &str) -> bool {
    let version = match version.strip_prefix("npm:") {
        Some(alias) => alias.rsplit_once('@').map_or("", |(_, version)| version),
        None => version,
    };
    let (release, pre) = version.split_once('-').unwrap_or((version, "0"));
    let numbers: Vec<&str> = release.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        && !pre.is_empty()
        && pre.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_version_is_exact() {
        for version in ["4.86.0", "1.20261117.1", "5.0.0-beta.2", "npm:wrangler@4.86.0", "npm:@scope/x@1.0.0"] {
            assert!(exact(version), "{version}");
        }
        for version in [
            "^4.86.0",
            "~1.2.3",
            "*",
            "latest",
            "4.86",
            "4.x.0",
            ">=1.0.0",
            "npm:wrangler@^4",
            "npm:wrangler",
            "",
            "1.2.3-",
            "git+https://x",
        ] {
            assert!(!exact(version), "{version}");
        }
    }

    #[test]
    fn a_loose_version_and_a_missing_or_telling_lock_are_found() {
        let loose = r#"{"dependencies":{"wrangler":"^4"}}"#;
        let pinned = r#"{"dependencies":{"wrangler":"4.86.0"}}"#;
        let count = |files: &[(&str, &str)]| check(&Tree::of(files)).len();
        assert_eq!(count(&[("c/package.json", loose), ("c/package-lock.json", "{}")]), 1);
        assert_eq!(count(&[("c/package.json", pinned)]), 1);
        assert_eq!(count(&[("c/package.json", pinned), ("c/package-lock.json", "\"resolved\": \"https://host/x\"")]), 1);
        assert_eq!(count(&[("c/package.json", pinned), ("c/package-lock.json", "{}")]), 0);
    }
}
