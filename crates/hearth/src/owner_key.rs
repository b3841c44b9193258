//! The owner's key: from `HEARTH_KEY`, or from `owner.key` in the data folder, made at first start.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use base::Rng;

use crate::{failure::Failure, variables};

/// The key's file inside the data folder: 64 hex digits and a line end, mode 0600.
pub(crate) const KEY_FILE: &str = "owner.key";
/// The name that the file has until it is whole.
pub(crate) const KEY_FILE_UNFINISHED: &str = "owner.key.tmp";
/// Characters of the key in the file: 32 random bytes in hex.
const KEY_HEX_CHARACTERS: usize = 64;
/// Characters that `HEARTH_KEY` must have at least.
const KEY_CHARACTERS_MIN: usize = 16;
/// Characters that it may have at most; it travels in a header.
const KEY_CHARACTERS_MAX: usize = 512;

/// A key. It has no `Display` and its `Debug` hides it, so it cannot slip into a log.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// The secret itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

/// The key that `HEARTH_KEY` holds (`value` is its content).
///
/// # Errors
/// If it is too short, too long, or holds characters that no header can carry. The text of the error never holds it.
pub(crate) fn from_variable(value: &str) -> Result<Key, Failure> {
    let wrong = |why: &str| {
        let expected = format!("expected {KEY_CHARACTERS_MIN} to {KEY_CHARACTERS_MAX} visible ASCII characters");
        Failure::usage(format!("{} {why} ({expected})", variables::HEARTH_KEY))
            .hint("make one with `openssl rand -hex 32`, or unset it to use the data folder's owner.key")
    };
    match value.len() {
        n if n < KEY_CHARACTERS_MIN => Err(wrong(&format!("is too short: {n} characters"))),
        n if n > KEY_CHARACTERS_MAX => Err(wrong(&format!("is too long: {n} characters"))),
        _ if !value.bytes().all(|byte| byte.is_ascii_graphic()) => Err(wrong("holds a character that is not visible ASCII")),
        _ => Ok(Key(value.to_owned())),
    }
}

/// Reads `owner.key`; `None` if there is no such file.
///
/// # Errors
/// If others may read it, or it does not hold a key.
pub(crate) fn read(data: &Path) -> Result<Option<Key>, Failure> {
    let path = data.join(KEY_FILE);
    let failed = |error: &io::Error| Failure::io(format!("{} could not be read", path.display()), error);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| failed(&error))?,
    };
    let mode = file.metadata().map_err(|error| failed(&error))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Failure::new(format!("others may read the owner's key {} (its mode is {mode:04o}, expected 0600)", path.display()))
            .hint(format!("chmod 600 {}", crate::shell::Shell::Sh.quote(&path.to_string_lossy()))));
    }
    let mut text = String::new();
    (&file).take(KEY_HEX_CHARACTERS as u64 + 3).read_to_string(&mut text).map_err(|error| failed(&error))?;
    let key = text.trim_end_matches(['\r', '\n']);
    if key.len() != KEY_HEX_CHARACTERS || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::new(format!(
            "{} does not hold a key (expected {KEY_HEX_CHARACTERS} hex digits and a line end)",
            path.display()
        ))
        .hint("put the file back from a backup, or remove it: the next start makes a new key, and the old one stops working"));
    }
    Ok(Some(Key(key.to_owned())))
}

/// Reads `owner.key`, or makes it. The caller holds the folder's lock.
///
/// # Errors
/// As [`read`], and if the file cannot be written.
pub(crate) fn read_or_make(data: &Path, rng: &dyn Rng) -> Result<Key, Failure> {
    if let Some(key) = read(data)? {
        return Ok(key);
    }
    let mut bytes = [0; KEY_HEX_CHARACTERS / 2];
    rng.fill(&mut bytes);
    let key: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write(data, &key).map_err(|error| Failure::io(format!("{} could not be written", data.join(KEY_FILE).display()), &error))?;
    Ok(Key(key))
}

/// Written under another name and renamed, with both the bytes and the name synced: a crash leaves
/// either no key or a whole one, and never one that a later start replaces.
fn write(data: &Path, key: &str) -> io::Result<()> {
    let unfinished = data.join(KEY_FILE_UNFINISHED);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(format!("{key}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, data.join(KEY_FILE))?;
    File::open(data)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use base::SystemRng;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_for_the_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(KEY_FILE_UNFINISHED), "left by a crash").unwrap();
        let key = read_or_make(dir.path(), &SystemRng).unwrap();
        let path = dir.path().join(KEY_FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", key.reveal()));
        assert_eq!(key.reveal().len(), 64);
        assert_eq!(read_or_make(dir.path(), &SystemRng).unwrap(), key);
        assert!(!dir.path().join(KEY_FILE_UNFINISHED).exists());
    }

    #[test]
    fn a_key_that_others_may_read_is_refused_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        read_or_make(dir.path(), &SystemRng).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(dir.path().join(KEY_FILE), fs::Permissions::from_mode(mode)).unwrap();
            let failure = read(dir.path()).unwrap_err();
            assert!(failure.message.contains(&format!("{mode:04o}")), "{}", failure.message);
            assert!(failure.hint.unwrap().starts_with("chmod 600 "));
        }
    }

    #[test]
    fn a_damaged_key_file_is_refused_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(KEY_FILE);
        for text in ["", "abc\n", &"g".repeat(64), &"a".repeat(65)] {
            let _ = fs::remove_file(&path);
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
            assert!(read_or_make(dir.path(), &SystemRng).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_weak_variable_is_refused_and_not_shown() {
        for value in ["short-secret-15", &"x".repeat(513), "sixteen characters with space", "ключключключключ"] {
            let failure = from_variable(value).unwrap_err();
            assert!(!failure.message.contains(value), "{}", failure.message);
            assert_eq!(failure.exit, 2);
        }
        assert_eq!(from_variable("exactly-16-chars").unwrap().reveal(), "exactly-16-chars");
        assert_eq!(format!("{:?}", from_variable("exactly-16-chars").unwrap()), "Key(hidden)");
    }
}
