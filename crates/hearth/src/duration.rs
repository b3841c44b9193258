//! Lengths of time as people write them: `90s`, `15m`, `12h`, `30d`, `2w`.

use std::time::Duration;

/// Reads a whole number and a unit; `None` for anything else, and for what would not fit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds_per_unit = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 24 * 3_600,
        'w' => 7 * 24 * 3_600,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(seconds_per_unit).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_are_read() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)] {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_none() {
        for text in ["", "d", "30", "-1d", "+1d", "1.5h", "1 d", "1dd", "1D", "3é", "é", "99999999999999999999s", "9999999999999999999w"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
