//! The settings of `hearth serve`: flags over environment over file over defaults, each with where
//! it came from.

mod file;
mod flags;
mod profile;
mod values;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use base::{AccountId, Limits};

pub(crate) use self::{flags::Flags, values::LogFormat};
use crate::{failure::Failure, table::Table, variables};

/// Where the data folder is unless told otherwise.
pub(crate) const DATA_DEFAULT: &str = "hearth-data";
/// Where the server listens unless told otherwise.
pub(crate) const LISTEN_DEFAULT: &str = "127.0.0.1:8787";
/// Databases kept open at once unless told otherwise. Each holds about five file handles, and 128
/// of them fit under the 1,024 handles that a process gets on most systems.
const OPEN_DATABASES_MAX_DEFAULT: usize = 128;

/// Where a setting's value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The command line.
    Flag,
    /// The named environment variable.
    Variable(&'static str),
    /// The config file.
    File,
    /// Nobody set it.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Variable(name) => f.write_str(name),
            Self::File => f.write_str("config file"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub source: Source,
}

/// The outcome.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The config file that was read.
    pub config: Option<Setting<PathBuf>>,
    /// The data folder.
    pub data: Setting<PathBuf>,
    /// `host:port`.
    pub listen: Setting<String>,
    /// The account's id.
    pub account_id: Setting<AccountId>,
    /// The account's name.
    pub account_name: Setting<String>,
    /// Limits of every user database; the profile's name is `limits.name`.
    pub limits: Setting<Limits>,
    /// The region that answers name.
    pub region: Setting<String>,
    /// The address that clients see; `None` is the listen address.
    pub public_url: Option<Setting<String>>,
    /// Databases kept open at once.
    pub open_databases_max: Setting<usize>,
    /// Log lines' form.
    pub log_format: Setting<LogFormat>,
    /// A `tracing` filter.
    pub log_level: Setting<String>,
}

/// Looks up a variable of the environment.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// Puts the layers together. `lookup` is the environment; the config file is read from disk.
    ///
    /// # Errors
    /// Names the setting, its value, where it came from and what was expected; exit code 2.
    pub(crate) fn load(flags: &Flags, lookup: Lookup<'_>) -> Result<Self, Failure> {
        let config = pick(flags.config.as_ref(), variables::HEARTH_CONFIG, lookup, None)
            .map(|Setting { value, source }| Setting { value: PathBuf::from(value), source });
        let file = match &config {
            Some(config) => file::File::read(&config.value)?,
            None => file::File::default(),
        };
        let account = file.account.unwrap_or_default();
        let log = file.log.unwrap_or_default();
        let layers = |flag: &Option<String>, variable, file, default: &str| {
            pick(flag.as_ref(), variable, lookup, file).unwrap_or_else(|| Setting { value: default.to_owned(), source: Source::Default })
        };

        let mut data = layers(&flags.data, variables::HEARTH_DATA, file.data, DATA_DEFAULT).map("data", |text| Ok(PathBuf::from(text)))?;
        if let (Source::File, Some(config)) = (&data.source, &config) {
            // A relative folder in a file is meant from where the file is, wherever the server starts.
            data.value = config.value.parent().unwrap_or(Path::new("")).join(&data.value);
        }
        let profile = layers(&flags.profile, variables::HEARTH_PROFILE, file.profile, "d1-paid");
        let open_max = file.open_databases_max.map(|n| n.to_string());
        let open_default = OPEN_DATABASES_MAX_DEFAULT.to_string();
        Ok(Self {
            data,
            listen: layers(&flags.listen, variables::HEARTH_LISTEN, file.listen, LISTEN_DEFAULT).map("listen", values::listen)?,
            account_id: layers(&flags.account_id, variables::HEARTH_ACCOUNT_ID, account.id, AccountId::DEFAULT)
                .map("account id", |text| text.parse().map_err(|error: base::Error| error.message))?,
            account_name: layers(&flags.account_name, variables::HEARTH_ACCOUNT_NAME, account.name, "Hearth")
                .map("account name", |text| values::short_text(text, 128))?,
            limits: profile.map("profile", |name| profile::limits(name, &file.profiles))?,
            region: layers(&flags.region, variables::HEARTH_REGION, file.region, "WEUR")
                .map("region", |text| values::short_text(text, 32))?,
            public_url: pick(flags.public_url.as_ref(), variables::HEARTH_PUBLIC_URL, lookup, file.public_url)
                .map(|setting| setting.map("public URL", values::public_url))
                .transpose()?,
            open_databases_max: layers(&flags.open_databases_max, variables::HEARTH_OPEN_DATABASES_MAX, open_max, &open_default)
                .map("open_databases_max", values::open_databases_max)?,
            log_format: layers(&flags.log_format, variables::HEARTH_LOG_FORMAT, log.format, "text").map("log format", str::parse)?,
            log_level: layers(&flags.log_level, variables::HEARTH_LOG_LEVEL, log.level, "info").map("log level", values::log_level)?,
            config,
        })
    }

    /// Every setting with its source, for `--print-config`. The key is no setting and is not here.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(["setting", "value", "source"]);
        for row in self.rows() {
            table.push(row);
        }
        table
    }

    /// The same as a JSON object: `{"listen": {"value": …, "source": …}, …}`.
    pub(crate) fn json(&self) -> serde_json::Value {
        let entries = self.rows().into_iter().map(|[name, value, source]| (name, serde_json::json!({ "value": value, "source": source })));
        serde_json::Value::Object(entries.collect())
    }

    fn rows(&self) -> Vec<[String; 3]> {
        let mut rows = Vec::new();
        let mut row = |name: &str, value: &dyn fmt::Display, source: &Source| {
            rows.push([name.to_owned(), value.to_string(), source.to_string()]);
        };
        if let Some(config) = &self.config {
            row("config", &config.value.display(), &config.source);
        }
        row("data", &self.data.value.display(), &self.data.source);
        row("listen", &self.listen.value, &self.listen.source);
        if let Some(url) = &self.public_url {
            row("public_url", &url.value, &url.source);
        }
        row("account.id", &self.account_id.value, &self.account_id.source);
        row("account.name", &self.account_name.value, &self.account_name.source);
        row("region", &self.region.value, &self.region.source);
        row("open_databases_max", &self.open_databases_max.value, &self.open_databases_max.source);
        row("log.format", &if self.log_format.value == LogFormat::Json { "json" } else { "text" }, &self.log_format.source);
        row("log.level", &self.log_level.value, &self.log_level.source);
        row("profile", &self.limits.value.name, &self.limits.source);
        for (name, value) in profile::fields(&self.limits.value) {
            row(&format!("profile.{name}"), &value, &self.limits.source);
        }
        rows
    }
}

impl Setting<String> {
    fn map<T>(self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Setting<T>, Failure> {
        match parse(&self.value) {
            Ok(value) => Ok(Setting { value, source: self.source }),
            Err(why) => Err(Failure::usage(format!("wrong {name} from {}: `{}`: {why}", self.source, self.value))),
        }
    }
}

fn pick(flag: Option<&String>, variable: &'static str, lookup: Lookup<'_>, file: Option<String>) -> Option<Setting<String>> {
    let setting = |value, source| Setting { value, source };
    flag.cloned()
        .map(|value| setting(value, Source::Flag))
        .or_else(|| lookup(variable).map(|value| setting(value, Source::Variable(variable))))
        .or_else(|| file.map(|value| setting(value, Source::File)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(flags: Flags, variables: &[(&str, &str)]) -> Result<Settings, Failure> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Settings::load(&flags, &find)
    }

    fn with_file(text: &str) -> (tempfile::TempDir, Flags) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hearth.toml");
        std::fs::write(&path, text).unwrap();
        (dir, Flags { config: Some(path.to_string_lossy().into_owned()), ..Flags::default() })
    }

    #[test]
    fn each_layer_covers_the_one_below_it() {
        let (_dir, flags) = with_file("listen = 'localhost:1'\nregion = 'APAC'\n[log]\nlevel = 'debug'\n");
        let set = load(flags.clone(), &[("HEARTH_LISTEN", "localhost:2")]).unwrap();
        assert_eq!((set.listen.value.as_str(), &set.listen.source), ("localhost:2", &Source::Variable("HEARTH_LISTEN")));
        assert_eq!((set.region.value.as_str(), &set.region.source), ("APAC", &Source::File));
        assert_eq!((set.log_level.value.as_str(), &set.log_level.source), ("debug", &Source::File));
        assert_eq!((set.account_id.value.as_str(), &set.account_id.source), (AccountId::DEFAULT, &Source::Default));
        let set = load(Flags { listen: Some("localhost:3".into()), ..flags }, &[("HEARTH_LISTEN", "localhost:2")]).unwrap();
        assert_eq!((set.listen.value.as_str(), &set.listen.source), ("localhost:3", &Source::Flag));
    }

    #[test]
    fn a_relative_data_folder_of_a_file_starts_where_the_file_is() {
        let (dir, flags) = with_file("data = 'd'\n");
        assert_eq!(load(flags.clone(), &[]).unwrap().data.value, dir.path().join("d"));
        assert_eq!(load(flags, &[("HEARTH_DATA", "e")]).unwrap().data.value, PathBuf::from("e"));
    }

    #[test]
    fn a_profile_of_the_file_starts_from_its_base() {
        let (_dir, flags) = with_file("profile = 'small'\n[profiles.small]\nbase = 'd1-free'\ncolumns_max = 7\n");
        let limits = load(flags, &[]).unwrap().limits.value;
        let expected = Limits { name: "small".into(), columns_max: 7, ..Limits::profile("d1-free").unwrap() };
        assert_eq!(limits, expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_origin() {
        for (text, expected) in [
            ("nope = 1", "unknown field `nope`"),
            ("listen = '8787'", "wrong listen from config file: `8787`: expected `host:port`"),
            ("profile = 'gold'", "no profile of this name (expected d1-paid, d1-free, unlimited or a table of the config file)"),
            ("profile = 'p'\n[profiles.p]\nbase = 'gold'", "its base `gold` is no built-in profile"),
            ("profile = 'p'\n[profiles.p]\nbase = 'd1-free'\ncolums_max = 1", "unknown field `colums_max`"),
            ("profile = 'p'\n[profiles.p]\nbase = 'd1-free'\ncolumns_max = -1", "columns_max"),
            ("open_databases_max = 0", "expected a number from 1 to 100000"),
            ("[account]\nid = 'x'", "expected 32 lower-case hex digits"),
            ("public_url = 'ftp://a'", "wrong public URL from config file"),
            ("[log]\nformat = 'xml'", "expected `text` or `json`"),
        ] {
            let (_dir, flags) = with_file(text);
            let failure = load(flags, &[]).expect_err(text);
            assert!(failure.message.contains(expected), "{text}: {}", failure.message);
            assert_eq!(failure.exit, 2, "{text}");
        }
        let failure = load(Flags { config: Some("/nonexistent/h.toml".into()), ..Flags::default() }, &[]).unwrap_err();
        assert!(failure.message.contains("/nonexistent/h.toml"), "{}", failure.message);
    }

    #[test]
    fn every_limit_is_printed() {
        let text = load(Flags::default(), &[]).unwrap().table().tab_separated();
        assert!(text.contains("profile.query_ms_max\t30000\tdefault\n"), "{text}");
        assert!(text.contains("data\thearth-data\tdefault\n"), "{text}");
    }
}
