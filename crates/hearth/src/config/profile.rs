//! Limits by the name of a profile, built in or made in the config file.

use std::collections::BTreeMap;

use base::Limits;
use serde_json::Value;

/// The limits of the profile `name`: one of `tables`, or a built-in one.
pub(super) fn limits(name: &str, tables: &BTreeMap<String, toml::Table>) -> Result<Limits, String> {
    let built_in = Limits::PROFILES.join(", ");
    let Some(table) = tables.get(name) else {
        return Limits::profile(name).ok_or(format!("no profile of this name (expected {built_in} or a table of the config file)"));
    };
    if Limits::profile(name).is_some() {
        return Err("a built-in profile cannot be redefined: give the table another name".to_owned());
    }
    let base_name = table.get("base").and_then(toml::Value::as_str).ok_or(format!("its table needs `base`, one of {built_in}"))?;
    let base = Limits::profile(base_name).ok_or(format!("its base `{base_name}` is no built-in profile (expected {built_in})"))?;
    let Ok(Value::Object(mut fields)) = serde_json::to_value(&base) else {
        return Err("its base cannot be read".to_owned());
    };
    for (field, value) in table.iter().filter(|(field, _)| *field != "base") {
        let value = serde_json::to_value(value).map_err(|error| format!("`{field}`: {error}"))?;
        fields.insert(field.clone(), value);
    }
    fields.insert("name".to_owned(), Value::from(name));
    // Field by field first: serde's own error for the whole would not name the one of a wrong type.
    for (field, value) in fields.iter().filter(|(field, _)| *field != "name") {
        if !value.is_u64() {
            return Err(format!("`{field}` is not a whole number from 0 on (got {value})"));
        }
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

/// Every limit by name, in the order of the struct, without the profile's own name.
pub(super) fn fields(limits: &Limits) -> Vec<(String, Value)> {
    match serde_json::to_value(limits) {
        Ok(Value::Object(fields)) => fields.into_iter().filter(|(name, _)| name != "name").collect(),
        _ => Vec::new(),
    }
}
