//! The settings of `hearth serve`: flags over environment over file over defaults, each with where
//! it came from.

mod file;
mod profile;

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use base::{AccountId, Limits};

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

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected `text` or `json`".to_owned()),
        }
    }
}

/// Flags of `hearth serve` and `hearth demo` that set something. All are texts, so that a wrong one
/// is reported in the same words wherever it came from.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Flags {
    /// Data folder; made if it is not there [env: HEARTH_DATA] [default: hearth-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Address to listen on; port 0 takes a free one [env: HEARTH_LISTEN] [default: 127.0.0.1:8787]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// TOML file with settings [env: HEARTH_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Limits: d1-paid, d1-free, unlimited or a [profiles] table of the config file [env: HEARTH_PROFILE]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Region that answers name [env: HEARTH_REGION] [default: WEUR]
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Address that clients see, if a proxy stands before Hearth [env: HEARTH_PUBLIC_URL]
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Account id, 32 lower-case hex digits [env: HEARTH_ACCOUNT_ID]
    #[arg(long, value_name = "ID")]
    pub account_id: Option<String>,
    /// Account name [env: HEARTH_ACCOUNT_NAME] [default: Hearth]
    #[arg(long, value_name = "NAME")]
    pub account_name: Option<String>,
    /// Databases kept open at once [env: HEARTH_OPEN_DATABASES_MAX] [default: 128]
    #[arg(long, value_name = "N")]
    pub open_databases_max: Option<String>,
    /// Log lines as text or json [env: HEARTH_LOG_FORMAT] [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Log level or filter [env: HEARTH_LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
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

        let mut data = layers(&flags.data, variables::HEARTH_DATA, file.data, DATA_DEFAULT).map("data", parse::<PathBuf>)?;
        if let (Source::File, Some(config)) = (&data.source, &config) {
            // A relative folder in a file is meant from where the file is, wherever the server starts.
            data.value = config.value.parent().unwrap_or(Path::new("")).join(&data.value);
        }
        let profile = layers(&flags.profile, variables::HEARTH_PROFILE, file.profile, "d1-paid");
        let open_max = file.open_databases_max.map(|n| n.to_string());
        let open_default = OPEN_DATABASES_MAX_DEFAULT.to_string();
        Ok(Self {
            data,
            listen: layers(&flags.listen, variables::HEARTH_LISTEN, file.listen, LISTEN_DEFAULT).map("listen", listen)?,
            account_id: layers(&flags.account_id, variables::HEARTH_ACCOUNT_ID, account.id, AccountId::DEFAULT)
                .map("account id", |text| text.parse().map_err(|error: base::Error| error.message))?,
            account_name: layers(&flags.account_name, variables::HEARTH_ACCOUNT_NAME, account.name, "Hearth")
                .map("account name", |text| short_text(text, 128))?,
            limits: profile.map("profile", |name| profile::limits(name, &file.profiles))?,
            region: layers(&flags.region, variables::HEARTH_REGION, file.region, "WEUR").map("region", |text| short_text(text, 32))?,
            public_url: pick(flags.public_url.as_ref(), variables::HEARTH_PUBLIC_URL, lookup, file.public_url)
                .map(|setting| setting.map("public URL", public_url))
                .transpose()?,
            open_databases_max: layers(&flags.open_databases_max, variables::HEARTH_OPEN_DATABASES_MAX, open_max, &open_default)
                .map("open_databases_max", open_databases_max)?,
            log_format: layers(&flags.log_format, variables::HEARTH_LOG_FORMAT, log.format, "text")
                .map("log format", LogFormat::from_str)?,
            log_level: layers(&flags.log_level, variables::HEARTH_LOG_LEVEL, log.level, "info").map("log level", log_level)?,
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

fn parse<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn listen(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    if let Some(Ok(_)) = port { Ok(text.to_owned()) } else { Err("expected `host:port`, for example `127.0.0.1:8787`".to_owned()) }
}

fn public_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    if rest.is_empty() || rest.starts_with('/') || text.contains(['?', '#', ' ', '@']) {
        return Err("expected `http://host` or `https://host`, without user, query or fragment".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn open_databases_max(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=100_000) => Ok(n),
        _ => Err("expected a number from 1 to 100000".to_owned()),
    }
}

fn short_text(text: &str, max: usize) -> Result<String, String> {
    if text.is_empty() || text.len() > max || text.chars().any(char::is_control) {
        return Err(format!("expected 1 to {max} bytes of text without control characters"));
    }
    Ok(text.to_owned())
}

fn log_level(text: &str) -> Result<String, String> {
    tracing_subscriber::EnvFilter::builder()
        .parse(text)
        .map(|_| text.to_owned())
        .map_err(|_| "expected error, warn, info, debug, trace or a filter such as `info,hearth_d1=debug`".to_owned())
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
