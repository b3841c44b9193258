//! What user SQL may touch: the same functions, pragmas, modules and names as in production.

use std::ffi::{CStr, c_char, c_int, c_void};

use rusqlite::ffi;

use crate::conn::{Denial, Shared};

/// Functions that user SQL may call. `load_extension` is on the list, as in production, and refuses by itself.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "->", "->>", "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "avg", "bm25", "ceil", "changes", "char",
    "coalesce", "concat", "concat_ws", "cos", "cosh", "count", "cume_dist", "current_date", "current_time", "current_timestamp",
    "date", "datetime", "degrees", "dense_rank", "exp", "first_value", "floor", "format", "glob", "group_concat", "hex",
    "highlight", "ifnull", "iif", "instr", "json", "json_array", "json_array_length", "json_each", "json_extract",
    "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch", "json_quote", "json_remove",
    "json_replace", "json_set", "json_tree", "json_type", "json_valid", "jsonb", "jsonb_array", "jsonb_extract",
    "jsonb_group_array", "jsonb_group_object", "jsonb_insert", "jsonb_object", "jsonb_patch", "jsonb_remove", "jsonb_replace",
    "jsonb_set", "julianday", "lag", "last_insert_rowid", "last_value", "lead", "length", "like", "likelihood", "likely", "ln",
    "load_extension", "log", "log2", "lower", "ltrim", "match", "max", "max_scalar", "min", "min_scalar", "mod", "nth_value",
    "ntile", "nullif", "octet_length", "percent_rank", "pi", "pow", "printf", "quote", "radians", "random", "randomblob", "rank",
    "replace", "round", "row_number", "rtreecheck", "rtrim", "sign", "sin", "sinh", "snippet", "soundex",
    "sqlite_drop_column", "sqlite_rename_column", "sqlite_rename_quotefix", "sqlite_rename_table", "sqlite_rename_test", "sqrt",
    "strftime", "string_agg", "substr", "substring", "sum", "tan", "tanh", "time", "timediff", "total", "total_changes", "trim",
    "trunc", "typeof", "unhex", "unicode", "unixepoch", "unlikely", "upper", "zeroblob",
];

/// The form of argument that a pragma takes from user SQL.
#[derive(Clone, Copy)]
enum Argument {
    None,
    Boolean,
    Name,
    OptionalName,
    OptionalNumber,
    OptionalNumberOrName,
    Any,
}

const PRAGMAS: &[(&str, Argument)] = &[
    ("case_sensitive_like", Argument::Boolean),
    ("data_version", Argument::None),
    ("defer_foreign_keys", Argument::Boolean),
    ("foreign_key_check", Argument::OptionalName),
    ("foreign_key_list", Argument::Name),
    ("foreign_keys", Argument::Boolean),
    ("ignore_check_constraints", Argument::Boolean),
    ("index_info", Argument::Name),
    ("index_list", Argument::Name),
    ("index_xinfo", Argument::Name),
    ("legacy_alter_table", Argument::Boolean),
    ("optimize", Argument::OptionalNumber),
    ("page_size", Argument::None),
    ("quick_check", Argument::OptionalNumberOrName),
    ("recursive_triggers", Argument::Boolean),
    ("reverse_unordered_selects", Argument::Boolean),
    ("table_info", Argument::Name),
    ("table_list", Argument::Any),
    ("table_xinfo", Argument::Name),
];

/// Modules that user SQL may make tables of.
const MODULES: [&str; 4] = ["fts5", "fts5vocab", "rtree", "rtree_i32"];

/// The C callback. `data` is the connection's [`Shared`].
///
/// # Safety
/// Only for `sqlite3_set_authorizer` with a pointer to a [`Shared`] that outlives the connection.
#[expect(unsafe_code, reason = "a callback from C")]
pub(crate) unsafe extern "C" fn callback(
    data: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    database: *const c_char,
    _trigger: *const c_char,
) -> c_int {
    // SAFETY: the caller passes a live Shared and C strings or nulls, as SQLite documents.
    let (shared, first, second, database) = unsafe { (&*data.cast::<Shared>(), text(first), text(second), text(database)) };
    if shared.internal.get() {
        return ffi::SQLITE_OK;
    }
    let allowed = match database {
        // For this action SQLite gives schema and table first, and in the place of the schema the new
        // name, which build.rs adds for a rename, or a column.
        _ if action == ffi::SQLITE_ALTER_TABLE => first != Some("temp") && name_ok(second) && name_ok(database),
        Some("temp") => allows_temp(action, first),
        _ => allows(action, first, second),
    };
    if allowed {
        if action == ffi::SQLITE_PRAGMA && second.is_some() {
            shared.pragma_set.set(true);
        }
        return ffi::SQLITE_OK;
    }
    let denial = if matches!(action, ffi::SQLITE_TRANSACTION | ffi::SQLITE_SAVEPOINT) { Denial::Transaction } else { Denial::Other };
    shared.denial.set(denial);
    ffi::SQLITE_DENY
}

#[expect(unsafe_code, reason = "reads a C string")]
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: SQLite passes NUL-terminated UTF-8; text that is not UTF-8 is treated as not there
    // and so never matches an allowed name.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

/// The temp schema may be read and updated, which SQLite does for its own ends, and no more.
fn allows_temp(action: c_int, table: Option<&str>) -> bool {
    matches!(action, ffi::SQLITE_READ | ffi::SQLITE_UPDATE) && name_ok(table)
}

fn allows(action: c_int, first: Option<&str>, second: Option<&str>) -> bool {
    match action {
        ffi::SQLITE_SELECT | ffi::SQLITE_RECURSIVE | ffi::SQLITE_ANALYZE => true,
        ffi::SQLITE_CREATE_TABLE
        | ffi::SQLITE_CREATE_VIEW
        | ffi::SQLITE_DELETE
        | ffi::SQLITE_DROP_TABLE
        | ffi::SQLITE_DROP_VIEW
        | ffi::SQLITE_INSERT
        | ffi::SQLITE_READ
        | ffi::SQLITE_REINDEX
        | ffi::SQLITE_UPDATE => name_ok(first),
        ffi::SQLITE_CREATE_INDEX | ffi::SQLITE_CREATE_TRIGGER | ffi::SQLITE_DROP_INDEX | ffi::SQLITE_DROP_TRIGGER => {
            name_ok(first) && name_ok(second)
        }
        ffi::SQLITE_CREATE_VTABLE | ffi::SQLITE_DROP_VTABLE => {
            name_ok(first) && second.is_some_and(|module| MODULES.iter().any(|known| module.eq_ignore_ascii_case(known)))
        }
        ffi::SQLITE_FUNCTION => second.is_some_and(function_ok),
        ffi::SQLITE_PRAGMA => first.is_some_and(|name| pragma_ok(name, second)),
        _ => false,
    }
}

/// Names that start with `_cf_` are kept for the platform, in any case of letters.
fn name_ok(name: Option<&str>) -> bool {
    !name.is_some_and(|name| name.as_bytes().get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"_cf_")))
}

fn function_ok(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    FUNCTIONS.binary_search(&lower.as_str()).is_ok()
}

fn pragma_ok(name: &str, argument: Option<&str>) -> bool {
    let lower = name.to_ascii_lowercase();
    let Ok(at) = PRAGMAS.binary_search_by_key(&lower.as_str(), |(name, _)| name) else { return false };
    match PRAGMAS[at].1 {
        Argument::None => argument.is_none(),
        Argument::Boolean => argument.is_none_or(boolean_ok),
        Argument::Name => argument.is_some() && name_ok(argument),
        Argument::OptionalName => name_ok(argument),
        Argument::OptionalNumber => argument.is_none_or(|text| text.parse::<i32>().is_ok()),
        Argument::OptionalNumberOrName => argument.is_none_or(|text| text.parse::<u32>().is_ok() || name_ok(argument)),
        Argument::Any => true,
    }
}

/// Production compares prefixes here, so `trueish` passes and `maybe` does not.
fn boolean_ok(text: &str) -> bool {
    let bytes = text.as_bytes();
    let quoted = bytes.len() >= 2 && matches!(bytes[0], b'\'' | b'"') && bytes[0] == bytes[bytes.len() - 1];
    let inner = if quoted { &bytes[1..bytes.len() - 1] } else { bytes };
    ["true", "false", "yes", "no", "on", "off", "1", "0"]
        .iter()
        .any(|word| inner.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_for_binary_search() {
        assert!(FUNCTIONS.is_sorted());
        assert!(PRAGMAS.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn reserved_names_are_refused_in_any_case() {
        for name in ["_cf_KV", "_CF_x", "_cf_"] {
            assert!(!name_ok(Some(name)), "{name}");
        }
        for name in ["_c", "cf_", "a_cf_b", ""] {
            assert!(name_ok(Some(name)), "{name}");
        }
    }

    #[test]
    fn a_boolean_pragma_takes_words_and_their_prefix_matches_only() {
        for text in ["ON", "'off'", "1", "trueish", "NO"] {
            assert!(boolean_ok(text), "{text}");
        }
        for text in ["", "maybe", "2", "'"] {
            assert!(!boolean_ok(text), "{text}");
        }
    }
}
