//! Values and column names as they stand in a file.

use std::fmt::Write as _;

use sqlite::Value;

/// Parses `1, 2.5, "text", x"00ff", null, inf`.
///
/// # Errors
/// A text that says what stands where a value should.
pub(super) fn values(text: &str) -> Result<Vec<Value>, String> {
    list(text, |token| match token {
        Token::Quoted(text) => Ok(Value::Text(text)),
        Token::Hex(bytes) => Ok(Value::Blob(bytes)),
        Token::Bare("null") => Ok(Value::Null),
        Token::Bare("inf") => Ok(Value::Real(f64::INFINITY)),
        Token::Bare("-inf") => Ok(Value::Real(f64::NEG_INFINITY)),
        Token::Bare(word) => number(word),
    })
}

/// An integer, or with `.` or `e` a real number, as SQL would write them.
fn number(word: &str) -> Result<Value, String> {
    let wrong =
        || format!("`{word}` is no value (expected null, an integer, a finite real number, inf, -inf, a \"text\" or an x\"hex\" blob)");
    if word.contains(['.', 'e', 'E']) {
        return word.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Real).ok_or_else(wrong);
    }
    word.parse().map(Value::Integer).map_err(|_| wrong())
}

/// Parses column names: bare words, or JSON strings where a name is empty or holds a comma, quote or space at an end.
///
/// # Errors
/// As [`values`].
pub(super) fn names(text: &str) -> Result<Vec<String>, String> {
    list(text, |token| match token {
        Token::Quoted(name) => Ok(name),
        Token::Bare(name) => Ok(name.to_owned()),
        Token::Hex(_) => Err("a column name cannot be a blob".to_owned()),
    })
}

/// Writes what [`values`] reads.
pub(super) fn show_values(values: &[Value]) -> String {
    join(values.iter().map(show_value))
}

/// Writes what [`names`] reads.
pub(super) fn show_names(names: &[String]) -> String {
    join(names.iter().map(|name| {
        let bare = !name.is_empty() && name.trim() == name && !name.starts_with("x\"") && !name.contains([',', '"', '\n', '\r', '\0']);
        if bare { name.clone() } else { quoted(name) }
    }))
}

/// Writes one value.
pub(super) fn show_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) if number.is_infinite() => if *number > 0.0 { "inf" } else { "-inf" }.to_owned(),
        // `{:?}` is the shortest form that reads back the same, and always holds a `.` or an `e`.
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) => quoted(text),
        Value::Blob(bytes) => {
            let mut hex = String::with_capacity(bytes.len() * 2 + 3);
            hex.push_str("x\"");
            for byte in bytes {
                write!(hex, "{byte:02x}").expect("writing to a String cannot fail");
            }
            hex.push('"');
            hex
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

enum Token<'a> {
    Bare(&'a str),
    Quoted(String),
    Hex(Vec<u8>),
}

/// Splits at commas outside of quotes. An empty text is an empty list.
fn list<T>(text: &str, each: impl Fn(Token<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut rest = text.trim();
    let mut out = Vec::new();
    if rest.is_empty() {
        return Ok(out);
    }
    loop {
        let (token, after) = token(rest)?;
        out.push(each(token)?);
        rest = after.trim_start();
        if rest.is_empty() {
            return Ok(out);
        }
        rest = rest.strip_prefix(',').ok_or_else(|| format!("`{rest}` follows a value (expected a comma)"))?.trim_start();
    }
}

fn token(text: &str) -> Result<(Token<'_>, &str), String> {
    if let Some(hex) = text.strip_prefix("x\"") {
        let (digits, rest) = hex.split_once('"').ok_or("a blob is not closed")?;
        return Ok((Token::Hex(bytes(digits)?), rest));
    }
    if text.starts_with('"') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
        return match stream.next() {
            Some(Ok(string)) => Ok((Token::Quoted(string), &text[stream.byte_offset()..])),
            _ => Err(format!("`{text}` does not begin with a JSON string")),
        };
    }
    let end = text.find(',').unwrap_or(text.len());
    match text[..end].trim() {
        "" => Err("a value is missing".to_owned()),
        word => Ok((Token::Bare(word), &text[end..])),
    }
}

fn bytes(digits: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{digits}` is no hex of whole bytes");
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong())).collect()
}
