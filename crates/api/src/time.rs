//! Times on the wire: ISO 8601, UTC, milliseconds, `Z`.

use base::{Code, Error, Result, Timestamp};

/// `2026-07-26T04:36:19.832Z`. A time outside the years -9999 to 9999 is held at the nearest end.
pub fn iso(time: Timestamp) -> String {
    let end = if time.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or(end);
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Reads RFC 3339 with any offset; finer than milliseconds is cut off.
///
/// # Errors
/// [`Code::BadRequest`] that names `field`.
pub fn parse(field: &str, text: &str) -> Result<Timestamp> {
    text.parse::<jiff::Timestamp>().map(|time| Timestamp(time.as_millisecond())).map_err(|_| {
        let shown: String = text.chars().take(64).collect();
        Error::new(Code::BadRequest, format!("`{field}` is not a time (got `{shown}`, expected for example `2026-12-31T23:59:59Z`)"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_has_three_digits_and_a_z() {
        assert_eq!(iso(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(Timestamp(1_785_040_579_832)), "2026-07-26T04:36:19.832Z");
        assert_eq!(iso(Timestamp(-1)), "1969-12-31T23:59:59.999Z");
        assert!(iso(Timestamp(i64::MAX)).starts_with("9999-"));
    }

    #[test]
    fn a_text_that_is_no_time_is_refused_by_name() {
        for text in ["", "tomorrow", "2026-13-01T00:00:00Z", "2026-01-01", "1785040579"] {
            assert!(parse("expires_on", text).unwrap_err().message.contains("`expires_on`"), "{text}");
        }
        assert_eq!(parse("t", "2026-07-26T06:36:19.8329+02:00").unwrap(), Timestamp(1_785_040_579_832));
    }

    proptest! {
        #[test]
        fn a_time_reads_back_the_same(ms in -62_000_000_000_000i64..253_000_000_000_000) {
            prop_assert_eq!(parse("t", &iso(Timestamp(ms))).unwrap(), Timestamp(ms));
        }
    }
}
