//! Names of states of a database.

use std::fmt;

use base::DatabaseId;
use log::Ticket;

/// The state of a database after one of its commits, written 8-8-8-32 in lower-case hex.
///
/// Bookmarks of one database sort as text in the order of its commits, over restarts too. The first
/// field is the epoch of its history, the next two the commit's position in the log, the last the
/// database. Time Travel does not take them yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bookmark {
    lsn: u64,
    database: DatabaseId,
}

impl Bookmark {
    pub(crate) const fn new(database: DatabaseId, ticket: Ticket) -> Self {
        Self { lsn: ticket.lsn(), database }
    }
}

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = u128::from_be_bytes(self.database.to_bytes());
        write!(f, "00000001-{:08x}-{:08x}-{database:032x}", self.lsn >> 32, self.lsn & 0xffff_ffff)
    }
}
