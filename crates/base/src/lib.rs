//! What every Hearth crate speaks: ids, errors, limits, grants and the ports to time and chance.
//!
//! `base` does no IO and knows no service. The one design decision: nothing above it reads the
//! clock or a random source on its own; both come in through [`Ctx`], so a test can set them.
//!
//! ```
//! use base::{DatabaseId, Limits};
//! let id: DatabaseId = "6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1".parse().unwrap();
//! assert_eq!(id.to_string().len(), 36);
//! assert_eq!(Limits::profile("d1-paid").unwrap().compound_select_terms_max, 5);
//! ```

pub mod ctx;
pub mod error;
pub mod grant;
pub mod id;
pub mod limits;

pub use ctx::{Clock, Ctx, Rng, SystemClock, SystemRng, Timestamp};
pub use error::{Code, Error, Kind, Result};
pub use grant::{Access, Grant, Scope, Service};
pub use id::{AccountId, DatabaseId, TokenId};
pub use limits::Limits;
