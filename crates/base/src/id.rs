//! Newtypes for every id, so that no signature holds two meanings of one primitive.

use std::{fmt, str::FromStr};

use crate::{Code, Error, Rng};

/// A database's id: a version 4 UUID, written in lower-case hex, 8-4-4-4-12.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseId(u128);

impl DatabaseId {
    /// The database in which Hearth keeps its own catalogue. Never listed, never addressed by a face.
    pub const SYSTEM: Self = Self(0);

    /// A fresh random id.
    pub fn random(rng: &dyn Rng) -> Self {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(u128::from_be_bytes(bytes))
    }

    /// The 16 bytes of the id, as the commit log stores them.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The id that [`Self::to_bytes`] gave.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DatabaseId {
    type Err = Error;

    /// # Errors
    /// [`Code::BadRequest`] if `text` is not 36 characters of lower- or upper-case hex in groups of 8-4-4-4-12.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::new(Code::BadRequest, format!("not a database id (got `{text}`, expected a UUID)"));
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return Err(wrong());
        }
        let mut value: u128 = 0;
        for (i, byte) in bytes.iter().enumerate() {
            if matches!(i, 8 | 13 | 18 | 23) {
                if *byte != b'-' {
                    return Err(wrong());
                }
                continue;
            }
            let digit = (*byte as char).to_digit(16).ok_or_else(wrong)?;
            value = (value << 4) | u128::from(digit);
        }
        Ok(Self(value))
    }
}

/// The account's id: 32 lower-case hex digits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AccountId(String);

impl AccountId {
    /// The account of a server that was not told another one.
    pub const DEFAULT: &'static str = "00000000000000000000000000000001";

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for AccountId {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AccountId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::new(Code::BadRequest, format!("not an account id (got `{text}`, expected 32 lower-case hex digits)")))
        }
    }
}

/// An API token's id: 32 lower-case hex digits. It names the token and is no secret.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TokenId(pub String);

impl TokenId {
    /// A fresh random id.
    pub fn random(rng: &dyn Rng) -> Self {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        Self(format!("{:032x}", u128::from_be_bytes(bytes)))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemRng;

    #[test]
    fn a_database_id_survives_text_and_bytes() {
        let id = DatabaseId::random(&SystemRng);
        assert_eq!(id.to_string().parse::<DatabaseId>().unwrap(), id);
        assert_eq!(DatabaseId::from_bytes(id.to_bytes()), id);
        assert_eq!(&id.to_string()[14..15], "4");
    }

    #[test]
    fn a_text_of_the_wrong_shape_is_no_database_id() {
        for text in
            ["", "x", "6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b", "6f1a2f5e+27e0-4a35-9d7a-1e0d0f5ac3b1", "6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3bg"]
        {
            assert!(text.parse::<DatabaseId>().is_err(), "{text}");
        }
    }
}
