//! The text files of the workspace, read once.

use std::{fs, io, path::Path};

/// Folders that hold nothing of ours.
const FOREIGN: [&str; 5] = ["target", "node_modules", ".git", "work", "data"];
/// Extensions of text files that the checks look at. Files without an extension are looked at too.
const TEXT: [&str; 19] = [
    "rs", "toml", "lock", "md", "mjs", "js", "cjs", "ts", "json", "sh", "py", "sqltest", "yml", "yaml", "txt", "html", "css", "sql",
    "capnp",
];
/// Bytes of one text file; a larger one is an error, because nothing of ours is that large.
const FILE_BYTES_MAX: u64 = 4_000_000;

/// One text file.
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The crate that a Rust file or manifest belongs to: `d1` for `crates/d1/src/lib.rs`.
    pub(crate) fn crate_name(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            Some(first) => first,
            None => "",
        }
    }

    /// Extension, empty if there is none; `.npmrc` has none.
    pub(crate) fn extension(&self) -> &str {
        extension(&self.path)
    }
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, extension)| extension)
}

/// All text files, sorted by path.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    /// Reads the tree below `root`. Walks folders rather than asking git, so that an archive of the
    /// source can be checked too.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self { files: Vec::new() };
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder))? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else {
                    return Err(io::Error::other(format!("a file name in `{folder}` is not UTF-8")));
                };
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                let kind = entry.file_type()?;
                if kind.is_dir() && !FOREIGN.contains(&name.as_str()) {
                    folders.push(path);
                } else if kind.is_file() && (extension(&path).is_empty() || TEXT.contains(&extension(&path))) {
                    tree.files.push(File { text: read_text(&root.join(&path), &path)?, path });
                }
            }
        }
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// A tree of given files, for tests of the checks.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|&(path, text)| File { path: path.to_owned(), text: text.to_owned() }).collect() }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.extension() == "rs")
    }

    /// Every crate's manifest; the workspace's own is not among them.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with("/Cargo.toml"))
    }
}

fn read_text(path: &Path, shown: &str) -> io::Result<String> {
    let bytes = fs::metadata(path)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("`{shown}` has {bytes} bytes (expected at most {FILE_BYTES_MAX})")));
    }
    fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), format!("`{shown}`: {e}")))
}
