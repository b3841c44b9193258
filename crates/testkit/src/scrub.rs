//! Takes out of a text what differs from run to run, so that the rest can be a snapshot.

/// Replaces, in this order where several could match:
/// - UUIDs by `[uuid]`, bookmarks (8-8-8-32 hex digits) by `[bookmark]`;
/// - dates with a time by `[time]`;
/// - ports of this machine (`127.0.0.1:`, `localhost:`, `[::1]:`) by `[port]`;
/// - numbers with a unit of time (`12 ms`, `0.5s`) by `[duration]`, and so the number after a JSON
///   key that ends in `duration` or `_ms`.
///
/// ```
/// use testkit::scrub::scrub;
/// assert_eq!(scrub(r#"took 1.25 ms {"sql_duration_ms": 0.031, "rows_read": 2}"#),
///            r#"took [duration] {"sql_duration_ms": [duration], "rows_read": 2}"#);
/// assert_eq!(scrub("listening on http://127.0.0.1:40123"), "listening on http://127.0.0.1:[port]");
/// ```
#[must_use]
pub fn scrub(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let starts_word = !out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let found = if starts_word { find(&out, rest) } else { None };
        let (replacement, len) = found.unwrap_or((&rest[..first.len_utf8()], first.len_utf8()));
        out.push_str(replacement);
        rest = &rest[len..];
    }
    out
}

/// What stands at the start of `rest`, and its length, if it is to be replaced.
fn find<'a>(before: &str, rest: &'a str) -> Option<(&'a str, usize)> {
    const HOSTS: [&str; 3] = ["127.0.0.1:", "localhost:", "[::1]:"];
    if let Some(len) = groups(rest, &[8, 4, 4, 4, 12]) {
        return Some(("[uuid]", len));
    }
    if let Some(len) = groups(rest, &[8, 8, 8, 32]) {
        return Some(("[bookmark]", len));
    }
    if let Some(len) = time(rest) {
        return Some(("[time]", len));
    }
    let number = number(rest)?;
    if HOSTS.iter().any(|host| before.ends_with(host)) {
        return Some(("[port]", number));
    }
    if after_duration_key(before) {
        return Some(("[duration]", number));
    }
    unit(&rest[number..]).map(|unit| ("[duration]", number + unit))
}

/// The length of hex groups of these sizes with hyphens between, if `text` starts with them.
fn groups(text: &str, sizes: &[usize]) -> Option<usize> {
    let mut at = 0;
    for (i, size) in sizes.iter().enumerate() {
        if i > 0 {
            at += usize::from(text[at..].starts_with('-'));
        }
        let digits = text[at..].bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits != *size {
            return None;
        }
        at += digits;
    }
    let hyphens = sizes.len() - 1;
    (at == sizes.iter().sum::<usize>() + hyphens).then_some(at)
}

/// The length of `2026-01-31T12:00:00.123Z` and its like.
fn time(text: &str) -> Option<usize> {
    const SHAPE: &[u8; 19] = b"0000-00-00T00:00:00";
    let head = text.as_bytes().get(..SHAPE.len())?;
    let fits = head.iter().zip(SHAPE).all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        other => byte == other,
    });
    if !fits {
        return None;
    }
    let mut len = SHAPE.len();
    if text[len..].starts_with('.') {
        len += 1 + digits(&text[len + 1..]);
    }
    if text[len..].starts_with('Z') {
        len += 1;
    } else if text[len..].starts_with(['+', '-']) && digits(&text[len + 1..]) == 2 && text[len + 3..].starts_with(':') {
        len += 6.min(text.len() - len);
    }
    Some(len)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The length of a decimal number, which must not go on as a word or a version.
fn number(text: &str) -> Option<usize> {
    let mut len = digits(text);
    if len == 0 {
        return None;
    }
    let fraction = text[len..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 {
        len += 1 + fraction;
    }
    Some(len)
}

/// The length of a unit of time with the space before it, if a word ends there.
fn unit(text: &str) -> Option<usize> {
    let spaces = usize::from(text.starts_with(' '));
    let word = text[spaces..].split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_unit = ["ns", "µs", "us", "ms", "s", "sec", "seconds"].contains(&word);
    is_unit.then_some(spaces + word.len())
}

/// Whether `before` ends in a JSON key for a time and its colon.
fn after_duration_key(before: &str) -> bool {
    let Some(key) = before.trim_end().strip_suffix(':') else { return false };
    let Some(key) = key.trim_end().strip_suffix('"') else { return false };
    key.ends_with("duration") || key.ends_with("_ms")
}

#[cfg(test)]
mod tests {
    use super::scrub;

    #[test]
    fn what_differs_is_replaced_and_what_only_resembles_it_stays() {
        for (text, expected) in [
            ("id 0f8fad5b-d9cb-469f-a165-70867728950e.", "id [uuid]."),
            ("0000000a-00000002-00004ad9-3cc7b2db6aae2b3b17cbbc8bd3e3b0e2", "[bookmark]"),
            ("at 2026-01-31T12:00:00.123456Z, 2026-01-31 12:00:00 and 2026-01-31T12:00:00+01:00", "at [time], [time] and [time]"),
            ("http://localhost:1 and [::1]:65535, 10.0.0.1:80", "http://localhost:[port] and [::1]:[port], 10.0.0.1:80"),
            ("Done in 12ms, 0.5 s, 3 µs; 5 statements, 7 sets", "Done in [duration], [duration], [duration]; 5 statements, 7 sets"),
            (r#"{"duration":0.12,"queued_ms" : 3,"count":3}"#, r#"{"duration":[duration],"queued_ms" : [duration],"count":3}"#),
            (
                "x0f8fad5b-d9cb-469f-a165-70867728950e 0f8fad5b-d9cb-469f-a165-70867728950ef",
                "x0f8fad5b-d9cb-469f-a165-70867728950e 0f8fad5b-d9cb-469f-a165-70867728950ef",
            ),
            ("1.2.3, 2026-01-31, `ä` 100%", "1.2.3, 2026-01-31, `ä` 100%"),
        ] {
            assert_eq!(scrub(text), expected);
        }
    }
}
