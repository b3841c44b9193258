//! The limits that a database runs under, by named profile.
//!
//! `d1-paid` and `d1-free` are Cloudflare's two plans; `unlimited` is what SQLite itself allows;
//! a config may define further tables that start from one of them.

use serde::{Deserialize, Serialize};

/// Every limit of one database or of one request to it. A field's unit is the last word of its name
/// before `max`; a `_max` is the largest value that is still allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The profile's name.
    pub name: String,
    /// Databases in the account (D1.01).
    pub databases_max: u64,
    /// Bytes of one database file (D1.02).
    pub database_bytes_max: u64,
    /// Bytes of all databases together (D1.03).
    pub account_bytes_max: u64,
    /// Statements in one request (D1.05).
    pub statements_per_request_max: u32,
    /// Columns of a table, a result or an index (D1.06).
    pub columns_max: u32,
    /// Bytes of one string or blob, and of a bound parameter (D1.07). A stored row, header included,
    /// may be 1,023 bytes longer, so that a value of just this length fits.
    pub value_bytes_max: u32,
    /// Bytes of a value or row that a read-only statement may touch, so that a row past the cap stays readable.
    pub read_value_bytes_max: u32,
    /// Bytes of one SQL statement (D1.08).
    pub statement_bytes_max: u32,
    /// Bound parameters of one statement (D1.09).
    pub parameters_max: u32,
    /// Arguments of one SQL function (D1.10).
    pub function_args_max: u32,
    /// Bytes of a `LIKE` or `GLOB` pattern (D1.11).
    pub like_pattern_bytes_max: u32,
    /// Milliseconds that one request's statements may run (D1.12).
    pub query_ms_max: u64,
    /// Terms of one compound `SELECT` (D1.17).
    pub compound_select_terms_max: u32,
    /// Depth of an expression tree.
    pub expression_depth_max: u32,
    /// Instructions of one prepared statement.
    pub vdbe_ops_max: u32,
    /// Depth of nested triggers.
    pub trigger_depth_max: u32,
    /// Bytes of all results of one request, as JSON would hold them.
    pub result_bytes_max: u64,
    /// Requests that may wait for one database.
    pub queued_requests_max: u32,
    /// Milliseconds that a request may wait for its database.
    pub queued_ms_max: u64,
    /// Bytes of one import file.
    pub import_bytes_max: u64,
}

impl Limits {
    /// The names that [`Self::profile`] knows.
    pub const PROFILES: [&'static str; 3] = ["d1-paid", "d1-free", "unlimited"];

    /// A built-in profile by name.
    pub fn profile(name: &str) -> Option<Self> {
        match name {
            "d1-paid" => Some(Self::d1_paid()),
            "d1-free" => Some(Self {
                name: "d1-free".to_owned(),
                databases_max: 10,
                database_bytes_max: 500_000_000,
                account_bytes_max: 5_000_000_000,
                statements_per_request_max: 50,
                ..Self::d1_paid()
            }),
            "unlimited" => Some(Self::unlimited()),
            _ => None,
        }
    }

    /// Cloudflare's paid plan: the default.
    pub fn d1_paid() -> Self {
        Self {
            name: "d1-paid".to_owned(),
            databases_max: 50_000,
            database_bytes_max: 10_000_000_000,
            account_bytes_max: 1_000_000_000_000,
            statements_per_request_max: 1_000,
            columns_max: 100,
            value_bytes_max: 2_000_000,
            read_value_bytes_max: 4 * 1024 * 1024,
            statement_bytes_max: 100_000,
            parameters_max: 100,
            function_args_max: 32,
            like_pattern_bytes_max: 50,
            query_ms_max: 30_000,
            compound_select_terms_max: 5,
            expression_depth_max: 100,
            vdbe_ops_max: 250_000_000,
            trigger_depth_max: 10,
            result_bytes_max: 50_000_000,
            queued_requests_max: 1_000,
            queued_ms_max: 30_000,
            import_bytes_max: 5_000_000_000,
        }
    }

    /// What SQLite itself allows; the profile of the databases that Hearth keeps for itself.
    pub fn unlimited() -> Self {
        Self {
            name: "unlimited".to_owned(),
            databases_max: 10_000_000,
            database_bytes_max: 17_592_186_040_320, // 2^32 - 2 pages of 4,096 bytes
            account_bytes_max: u64::MAX,
            statements_per_request_max: 1_000_000,
            columns_max: 2_000,
            value_bytes_max: 1_000_000_000,
            read_value_bytes_max: 1_000_000_000,
            statement_bytes_max: 1_000_000_000,
            parameters_max: 32_766,
            function_args_max: 1_000,
            like_pattern_bytes_max: 50_000,
            query_ms_max: 86_400_000,
            compound_select_terms_max: 500,
            expression_depth_max: 1_000,
            vdbe_ops_max: 250_000_000,
            trigger_depth_max: 1_000,
            result_bytes_max: 1_000_000_000,
            queued_requests_max: 100_000,
            queued_ms_max: 3_600_000,
            import_bytes_max: 1_000_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_profile_is_there_and_carries_its_name() {
        for name in Limits::PROFILES {
            assert_eq!(Limits::profile(name).unwrap().name, name);
        }
        assert!(Limits::profile("d1-gold").is_none());
    }
}
