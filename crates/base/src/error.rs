//! One error type for all crates: coarse kinds for callers, stable codes for faces.

use std::fmt;

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request is wrong. Mend it; sending it again does not help.
    Invalid,
    /// The thing named is not there. Create it or mend the name.
    NotFound,
    /// The thing is there already or has changed meanwhile. Look again, then decide.
    Conflict,
    /// No credential, or none that is known. Send one.
    Unauthenticated,
    /// The credential is known and does not allow this. Ask for a wider one.
    Forbidden,
    /// A documented limit is met. Make the request smaller or choose another profile.
    LimitExceeded,
    /// Nothing is wrong with the request; it may succeed later.
    Unavailable,
    /// Stored data is damaged. The file named is fenced; `hearth doctor` says how to mend it.
    Corrupt,
    /// A fault of Hearth itself.
    Internal,
}

/// What went wrong, stable across releases. `api::error` maps each to a Cloudflare code and a
/// HTTP status; nothing else may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Body, query or header is malformed.
    BadRequest,
    /// The body is larger than the route takes.
    BodyTooLarge,
    /// No route at this path, or an account that is not ours.
    NoRoute,
    /// Path exists, method does not.
    MethodNotAllowed,
    /// No credential in the request.
    CredentialMissing,
    /// A credential that is not known, expired or revoked.
    CredentialUnknown,
    /// The token's scopes do not cover the request.
    ScopeMissing,
    /// No database with this id or name.
    DatabaseNotFound,
    /// A database of this name exists.
    DatabaseExists,
    /// The profile's number of databases is reached.
    DatabasesMax,
    /// SQLite refused or failed a statement; the message is SQLite's, with `: SQLITE_<NAME>`.
    Sql,
    /// Refused before SQLite: wrong parameter count or type, no statement, too many statements.
    Statement,
    /// A queue is full or a wait in it was too long.
    Overloaded,
    /// A statement ran past its time.
    Timeout,
    /// The server is stopping or the database was reset under the request.
    Reset,
    /// The result is larger than the profile allows.
    ResultTooLarge,
    /// Import or export step refused.
    Transfer,
    /// An upload or download link is unknown, used or past its time.
    LinkUnknown,
    /// No token with this id.
    TokenNotFound,
    /// A part of the contract that this release does not serve.
    NotImplemented,
    /// The disk is full.
    DiskFull,
    /// Reading or writing a file failed.
    Io,
    /// Stored bytes fail their checksum or shape.
    Corrupt,
    /// A fault of ours.
    Internal,
}

impl Code {
    /// The kind that a code belongs to.
    pub const fn kind(self) -> Kind {
        match self {
            Self::BadRequest | Self::Sql | Self::Statement | Self::Transfer | Self::MethodNotAllowed => Kind::Invalid,
            Self::NoRoute | Self::DatabaseNotFound | Self::TokenNotFound | Self::LinkUnknown => Kind::NotFound,
            Self::DatabaseExists => Kind::Conflict,
            Self::CredentialMissing | Self::CredentialUnknown => Kind::Unauthenticated,
            Self::ScopeMissing => Kind::Forbidden,
            Self::BodyTooLarge | Self::DatabasesMax | Self::ResultTooLarge | Self::Timeout => Kind::LimitExceeded,
            Self::Overloaded | Self::Reset | Self::DiskFull => Kind::Unavailable,
            Self::NotImplemented => Kind::Invalid,
            Self::Corrupt => Kind::Corrupt,
            Self::Io | Self::Internal => Kind::Internal,
        }
    }

    /// All codes, for snapshots of the error table.
    pub const ALL: [Self; 24] = [
        Self::BadRequest,
        Self::BodyTooLarge,
        Self::NoRoute,
        Self::MethodNotAllowed,
        Self::CredentialMissing,
        Self::CredentialUnknown,
        Self::ScopeMissing,
        Self::DatabaseNotFound,
        Self::DatabaseExists,
        Self::DatabasesMax,
        Self::Sql,
        Self::Statement,
        Self::Overloaded,
        Self::Timeout,
        Self::Reset,
        Self::ResultTooLarge,
        Self::Transfer,
        Self::LinkUnknown,
        Self::TokenNotFound,
        Self::NotImplemented,
        Self::DiskFull,
        Self::Io,
        Self::Corrupt,
        Self::Internal,
    ];
}

/// An error with a text for the caller and, apart from it, a text for the operator.
///
/// `Display` prints the caller's text only and never repeats the source.
pub struct Error {
    /// Decides code and HTTP status at the faces.
    pub code: Code,
    /// For the caller: what was got, what was expected. Holds no secret and no path of the host.
    pub message: String,
    /// For the operator's log only.
    pub internal: Option<String>,
    /// Whether the same request may succeed if it is sent again unchanged.
    pub retryable: bool,
    /// What lay below.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error whose `retryable` follows from the code's kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), internal: None, retryable: matches!(code.kind(), Kind::Unavailable), source: None }
    }

    /// A fault of ours: the caller is told no detail, the log all of it.
    pub fn internal(detail: impl Into<String>) -> Self {
        let mut error = Self::new(Code::Internal, "internal error; the server's log has the detail");
        error.internal = Some(detail.into());
        error
    }

    /// An I/O error on `what` (a name of ours, not a path). A full disk gets its own code.
    pub fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        let full = matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        let mut error = if full {
            Self::new(Code::DiskFull, "the disk of the data folder is full; nothing was changed. Free space, then send the request again")
        } else {
            Self::new(Code::Io, format!("{what} could not be read or written"))
        };
        error.internal = Some(format!("{what}: {source}"));
        error.source = Some(Box::new(source));
        error
    }

    /// The coarse kind of the error's code.
    pub fn kind(&self) -> Kind {
        self.code.kind()
    }

    /// The same error with the operator's text set.
    #[must_use]
    pub fn with_internal(mut self, detail: impl Into<String>) -> Self {
        self.internal = Some(detail.into());
        self
    }

    /// The same error with `retryable` set.
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)?;
        if let Some(internal) = &self.internal {
            write!(f, " ({internal})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
