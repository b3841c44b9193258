//! Which server a client command talks to, and with which key.

use std::path::{Path, PathBuf};

use base::AccountId;

use crate::{
    config::{DATA_DEFAULT, LISTEN_DEFAULT, Lookup},
    failure::Failure,
    lock,
    owner_key::{self, Key},
    variables,
};

/// Flags of every client command.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TargetFlags {
    /// The server [env: HEARTH_URL] [default: the server that runs on the data folder, else http://127.0.0.1:8787]
    #[arg(long, global = true, help_heading = "Server", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Data folder whose server and owner's key are used [env: HEARTH_DATA] [default: hearth-data]
    #[arg(long, global = true, help_heading = "Server", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// A server and what opens it.
#[derive(Debug)]
pub(crate) struct Target {
    /// `http://host:port`, without a trailing slash.
    pub(crate) url: String,
    /// The owner's key or an API token.
    pub(crate) key: Key,
    /// The account that paths name.
    pub(crate) account: AccountId,
}

impl Target {
    /// Finds the server: `--url`, the server that runs on `--data`, `HEARTH_URL`, the server that
    /// runs on `HEARTH_DATA` or the default folder, the listen address. Then the key: that of a folder
    /// named by `--data` alone, else `HEARTH_KEY`, else the folder's `owner.key`.
    ///
    /// # Errors
    /// If the address is wrong or there is no key.
    pub(crate) fn find(flags: &TargetFlags, lookup: Lookup<'_>) -> Result<Self, Failure> {
        let data =
            flags.data.clone().or_else(|| lookup(variables::HEARTH_DATA).map(PathBuf::from)).unwrap_or_else(|| PathBuf::from(DATA_DEFAULT));
        let running = || lock::holder(&data).ok().flatten().and_then(|holder| holder.url);
        let url = match &flags.url {
            Some(url) => url.clone(),
            None => flags
                .data
                .as_ref()
                .and_then(|_| running())
                .or_else(|| lookup(variables::HEARTH_URL))
                .or_else(running)
                .unwrap_or_else(|| listen_url(&lookup(variables::HEARTH_LISTEN).unwrap_or_else(|| LISTEN_DEFAULT.to_owned()))),
        };
        let url = check_url(&url)?;
        let account = match lookup(variables::HEARTH_ACCOUNT_ID) {
            Some(text) => text
                .parse()
                .map_err(|error: base::Error| Failure::usage(format!("wrong {}: {}", variables::HEARTH_ACCOUNT_ID, error.message)))?,
            None => AccountId::default(),
        };
        // A folder that is named means its own server, whatever another one's key stands in the environment.
        let own = flags.data.is_some() && flags.url.is_none() && is_loopback(&url);
        let key = match own.then(|| owner_key::read(&data)).transpose()?.flatten() {
            Some(key) => key,
            None => key(&url, &data, lookup)?,
        };
        Ok(Self { key, url, account })
    }
}

/// The folder's key is sent to this machine only: a mistyped address must not get it.
fn key(url: &str, data: &Path, lookup: Lookup<'_>) -> Result<Key, Failure> {
    if let Some(value) = lookup(variables::HEARTH_KEY) {
        return owner_key::from_variable(&value);
    }
    let missing = |message: String| {
        Failure::new(message).hint("set HEARTH_KEY to the owner's key or to an API token, or name the server's data folder with --data")
    };
    if !is_loopback(url) {
        return Err(missing(format!("no key for {url}: HEARTH_KEY is not set, and owner.key is only sent to this machine")));
    }
    owner_key::read(data)?
        .ok_or_else(|| missing(format!("no key: HEARTH_KEY is not set, and there is no {}", data.join(owner_key::KEY_FILE).display())))
}

/// `http://host[:port][/prefix]`, without a trailing slash and without wrangler's `/client/v4`.
fn check_url(url: &str) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::usage(format!("wrong server address `{url}`: {why}"));
    if url.starts_with("https://") {
        return Err(wrong("this program speaks plain HTTP only")
            .hint("reach the server through a tunnel (`ssh -L 8787:127.0.0.1:8787 HOST`), or use wrangler, which speaks HTTPS"));
    }
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(wrong("expected `http://host:port`"));
    };
    if rest.is_empty() || rest.starts_with(['/', ':']) || rest.contains(['@', '?', '#', ' ']) {
        return Err(wrong("expected `http://host:port`, without user, query or fragment"));
    }
    let url = url.trim_end_matches('/');
    Ok(url.strip_suffix("/client/v4").unwrap_or(url).to_owned())
}

fn is_loopback(url: &str) -> bool {
    let authority = url.strip_prefix("http://").unwrap_or(url).split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn listen_url(listen: &str) -> String {
    let (host, port) = listen.rsplit_once(':').unwrap_or((listen, "8787"));
    let host = match host {
        "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    format!("http://{host}:{port}")
}

#[cfg(test)]
mod tests {
    use base::SystemRng;

    use super::*;

    fn find(flags: &TargetFlags, variables: &[(&str, &str)]) -> Result<Target, Failure> {
        Target::find(flags, &|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    const KEY: (&str, &str) = ("HEARTH_KEY", "a-key-of-the-tests");

    #[test]
    fn the_address_comes_from_the_nearest_place() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().to_string_lossy().into_owned();
        let lock = lock::DataLock::acquire(dir.path()).unwrap();
        lock.set_url("http://127.0.0.1:4").unwrap();
        let flags = |url: Option<&str>, data: Option<&Path>| TargetFlags { url: url.map(Into::into), data: data.map(Into::into) };
        let url = |flags, variables: &[_]| find(&flags, variables).unwrap().url;
        let (by_url, by_data) = (("HEARTH_URL", "http://h:3/client/v4/"), ("HEARTH_DATA", data.as_str()));
        assert_eq!(url(flags(Some("http://h:1/"), Some(dir.path())), &[KEY, by_url]), "http://h:1");
        assert_eq!(url(flags(None, Some(dir.path())), &[KEY, by_url]), "http://127.0.0.1:4");
        assert_eq!(url(flags(None, None), &[KEY, by_url, by_data]), "http://h:3");
        assert_eq!(url(flags(None, None), &[KEY, by_data]), "http://127.0.0.1:4");
        drop(lock);
        assert_eq!(url(flags(None, None), &[KEY, by_data, ("HEARTH_LISTEN", "0.0.0.0:5")]), "http://127.0.0.1:5");
        assert_eq!(url(flags(None, None), &[KEY, by_data]), "http://127.0.0.1:8787");
    }

    #[test]
    fn the_folders_key_goes_to_this_machine_only() {
        let dir = tempfile::tempdir().unwrap();
        let made = owner_key::read_or_make(dir.path(), &SystemRng).unwrap();
        let flags = |url: &str| TargetFlags { url: Some(url.into()), data: Some(dir.path().into()) };
        for url in ["http://127.0.0.1:1", "http://localhost", "http://[::1]:2", "http://127.8.8.8:3/x"] {
            assert_eq!(find(&flags(url), &[]).unwrap().key, made, "{url}");
        }
        for url in ["http://10.0.0.1:1", "http://localhost.example.org", "http://127.0.0.1.example.org:1", "http://[2001:db8::1]"] {
            let failure = find(&flags(url), &[]).unwrap_err();
            assert!(failure.message.contains("only sent to this machine"), "{url}: {}", failure.message);
            assert_eq!(find(&flags(url), &[KEY]).unwrap().key.reveal(), KEY.1);
        }
    }

    #[test]
    fn a_wrong_address_is_refused() {
        for url in ["127.0.0.1:8787", "https://h", "http://", "http://:80", "http:///x", "http://u:p@h", "http://h?x", "ftp://h"] {
            let flags = TargetFlags { url: Some(url.into()), data: None };
            assert_eq!(find(&flags, &[KEY]).unwrap_err().exit, 2, "{url}");
        }
    }
}
