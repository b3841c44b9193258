//! The folder of migration files, and their order.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use crate::failure::Failure;

/// Files that a folder may hold.
const FILES_MAX: usize = 100_000;
/// Bytes of one file.
const FILE_BYTES_MAX: u64 = 32_000_000;

/// Names of the `.sql` files of `dir`, in the order in which they are applied: by leading number,
/// as wrangler sorts them, then by name; files without a number come last.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, Failure> {
    let unreadable = |error: &io::Error| {
        Failure::io(format!("the migrations folder {} could not be read", dir.display()), error)
            .hint("name it with --migrations-dir, or make a first file with `hearth d1 migrations create DATABASE NAME`")
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| unreadable(&error))? {
        let entry = entry.map_err(|error| unreadable(&error))?;
        if entry.path().extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| Failure::new(format!("the name of the migration {} is not UTF-8", name.display())).hint("rename the file"))?;
        names.push(name);
        if names.len() > FILES_MAX {
            return Err(Failure::new(format!("{} holds more than {FILES_MAX} migrations", dir.display())));
        }
    }
    names.sort_by_cached_key(|name| order(name));
    Ok(names)
}

/// What files are sorted by.
pub(super) fn order(name: &str) -> (u64, String) {
    (number(name).unwrap_or(u64::MAX), name.to_owned())
}

/// The number that a name begins with.
pub(super) fn number(name: &str) -> Option<u64> {
    let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    name[..digits].parse().ok()
}

/// The number of the next file: the largest plus one, and 1 in an empty folder.
pub(super) fn next_number(names: &[String]) -> u64 {
    names.iter().filter_map(|name| number(name)).max().map_or(1, |largest| largest.saturating_add(1))
}

/// The SQL of a file.
///
/// # Errors
/// If it cannot be read, is too large, or is not UTF-8.
pub(super) fn read(dir: &Path, name: &str) -> Result<String, Failure> {
    let path = dir.join(name);
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::io(format!("{} could not be read", path.display()), &error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::new(format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display()))
            .hint("load its rows with `hearth d1 import`, and keep the schema in the migration"));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("{} is not UTF-8", path.display())).hint("convert it, for example with `iconv`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(names: &[&str]) -> u64 {
        next_number(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_next_number_is_one_past_the_largest() {
        assert_eq!(next(&[]), 1);
        assert_eq!(next(&["seed.sql"]), 1);
        assert_eq!(next(&["0000_init.sql"]), 1);
        assert_eq!(next(&["0001_a.sql", "0330_b.sql", "0007_c.sql"]), 331);
        assert_eq!(next(&["9999_a.sql"]), 10_000);
        assert_eq!(next(&["99999999999999999999_too_large.sql", "0002_b.sql"]), 3);
    }

    #[test]
    fn files_run_by_number_and_not_by_text() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["10_j.sql", "9_i.sql", "0001_a.sql", "1_b.sql", "seed.sql", "notes.txt", "0002_c.sql"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(names(dir.path()).unwrap(), ["0001_a.sql", "1_b.sql", "0002_c.sql", "9_i.sql", "10_j.sql", "seed.sql"]);
    }

    #[test]
    fn a_missing_folder_is_named_with_the_remedy() {
        let failure = names(Path::new("/nonexistent/migrations")).unwrap_err();
        assert!(failure.message.contains("/nonexistent/migrations"));
        assert!(failure.hint.unwrap().contains("--migrations-dir"));
    }
}
