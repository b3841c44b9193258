//! JSON as V8 would print it, straight into a byte buffer.
//!
//! D1's answers are made by `JSON.stringify`; clients compare texts, so numbers follow
//! ECMAScript's `Number::toString`. One difference is wanted: integers keep all 64 bits, where D1
//! rounds past 2^53. A JavaScript client rounds them itself and sees what D1 would have sent.

use std::io::Write;

/// Appends `text`, quoted and escaped.
pub fn string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a byte buffer takes every write");
}

/// Appends an integer with all its digits.
pub fn integer(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("a byte buffer takes every write");
}

/// Appends a double as ECMAScript prints it: shortest digits that read back the same, `1` for 1.0,
/// `1e+21` from 10^21 on, `null` for infinities and NaN.
pub fn number(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        // Below 10^15 a whole double is an exact integer; this also turns -0 into 0, as V8 does.
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 10^15")]
        integer(out, value as i64);
        return;
    }
    if value < 0.0 {
        out.push(b'-');
    }
    let mut buffer = [0; 32];
    let (digits, point) = shortest(value.abs(), &mut buffer);
    lay_out(out, digits, point);
}

/// Appends bytes as D1 sends a blob: an array of numbers from 0 to 255.
pub fn blob(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 4 + 2);
    out.push(b'[');
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let (hundreds, tens, ones) = (byte / 100, byte / 10 % 10, byte % 10);
        if hundreds > 0 {
            out.push(b'0' + hundreds);
        }
        if hundreds > 0 || tens > 0 {
            out.push(b'0' + tens);
        }
        out.push(b'0' + ones);
    }
    out.push(b']');
}

/// The shortest decimal digits of a positive `value`, and where the point stands: value = 0.digits · 10^point.
fn shortest(value: f64, buffer: &mut [u8; 32]) -> (&[u8], i32) {
    let mut rest = &mut buffer[..];
    write!(rest, "{value:e}").expect("17 digits, a point and an exponent fit in 32 bytes");
    let n = 32 - rest.len();
    let e = buffer[..n].iter().position(|b| *b == b'e').expect("`{:e}` prints an exponent");
    let exponent: i32 = std::str::from_utf8(&buffer[e + 1..n]).ok().and_then(|text| text.parse().ok()).expect("an exponent is an integer");
    // `d.ddd`: move the first digit over the point, so that the digits lie together.
    if e > 1 {
        buffer[1] = buffer[0];
        return (&buffer[1..e], exponent + 1);
    }
    (&buffer[..1], exponent + 1)
}

/// ECMAScript's `Number::toString`, steps 6 to 11, for radix 10.
fn lay_out(out: &mut Vec<u8>, digits: &[u8], point: i32) {
    let n_digits = i32::try_from(digits.len()).expect("at most 17 digits");
    if n_digits <= point && point <= 21 {
        out.extend_from_slice(digits);
        out.resize(out.len() + usize::try_from(point - n_digits).expect("not negative"), b'0');
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).expect("positive"));
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else if -6 < point && point <= 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + usize::try_from(-point).expect("not negative"), b'0');
        out.extend_from_slice(digits);
    } else {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        write!(out, "e{:+}", point - 1).expect("a byte buffer takes every write");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(value: f64) -> String {
        let mut out = Vec::new();
        number(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_print_as_v8_prints_them() {
        // The right column is what Node prints for the same double.
        for (value, text) in [
            (1.0, "1"),
            (-1.0, "-1"),
            (-0.0, "0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.5, "1.5"),
            (1e300, "1e+300"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.234e21, "1.234e+21"),
            (123456789012345680000.0, "123456789012345680000"),
            (1e15, "1000000000000000"),
            (999999999999999.0, "999999999999999"),
            (9007199254740992.0, "9007199254740992"),
            (9.223_372_036_854_776e18, "9223372036854776000"),
            (5e-324, "5e-324"),
            (1e-6, "0.000001"),
            (1.5e-6, "0.0000015"),
            (1e-7, "1e-7"),
            (1.25e-7, "1.25e-7"),
            (-123.456, "-123.456"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "null"),
            (f64::NEG_INFINITY, "null"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(printed(value), text);
        }
    }

    #[test]
    fn a_blob_is_an_array_of_numbers() {
        let mut out = Vec::new();
        blob(&mut out, &[0, 9, 10, 99, 100, 255]);
        assert_eq!(out, b"[0,9,10,99,100,255]");
        out.clear();
        blob(&mut out, &[]);
        assert_eq!(out, b"[]");
    }

    proptest! {
        #[test]
        fn every_finite_double_reads_back_the_same(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            let text = printed(value);
            let back: f64 = text.parse().unwrap();
            prop_assert!(back == value, "{value:?} printed as {text}");
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text} is no JSON");
        }

        #[test]
        fn every_string_reads_back_the_same(text in any::<String>()) {
            let mut out = Vec::new();
            string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn every_blob_reads_back_the_same(bytes in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            blob(&mut out, &bytes);
            prop_assert_eq!(serde_json::from_slice::<Vec<u8>>(&out).unwrap(), bytes);
        }
    }
}
