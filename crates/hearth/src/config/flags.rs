//! The flags that set something.

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
