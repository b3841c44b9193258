//! The shape of the config file. A key that is not here is an error, so a misspelt one is found.

use std::{collections::BTreeMap, io::Read, path::Path};

use serde::Deserialize;

use crate::failure::Failure;

/// Bytes of a config file. A real one has a few hundred.
const FILE_BYTES_MAX: u64 = 1_000_000;

/// A config file; every key may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The data folder; a relative one starts from the file's own folder.
    pub(super) data: Option<String>,
    /// `host:port`.
    pub(super) listen: Option<String>,
    /// `[account]`.
    pub(super) account: Option<Account>,
    /// Name of a built-in profile or of a table in `[profiles]`.
    pub(super) profile: Option<String>,
    /// The region that answers name.
    pub(super) region: Option<String>,
    /// The address that clients see.
    pub(super) public_url: Option<String>,
    /// Databases kept open at once.
    pub(super) open_databases_max: Option<i64>,
    /// `[log]`.
    pub(super) log: Option<Log>,
    /// `[profiles.NAME]`: `base`, and any limit that differs from it.
    #[serde(default)]
    pub(super) profiles: BTreeMap<String, toml::Table>,
}

/// `[account]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    /// 32 lower-case hex digits.
    pub(super) id: Option<String>,
    /// As `wrangler whoami` shows it.
    pub(super) name: Option<String>,
}

/// `[log]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    /// `text` or `json`.
    pub(super) format: Option<String>,
    /// A level or filter.
    pub(super) level: Option<String>,
}

impl File {
    /// Reads and checks a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let unreadable = |error| {
            Failure::usage(format!("the config file {} could not be read: {error}", path.display()))
                .hint("mend the path given with --config or HEARTH_CONFIG, or leave it out")
        };
        let mut text = String::new();
        std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)).map_err(unreadable)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(Failure::usage(format!("the config file {} is larger than {FILE_BYTES_MAX} bytes", path.display())));
        }
        toml::from_str(&text)
            .map_err(|error| Failure::usage(format!("the config file {} is wrong: {}", path.display(), error.to_string().trim_end())))
    }
}
