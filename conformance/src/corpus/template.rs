//! Templates keep the limits' cases short: `{{repeat:x:2000000}}` stands for two million `x`.

/// Bytes that one line may grow to.
const EXPANDED_BYTES_MAX: usize = 8_000_000;

/// Replaces every template of `text`:
///
/// - `{{repeat:TEXT:N}}`: `TEXT`, `N` times;
/// - `{{list:TEXT:N}}`: `TEXT` for 1 to `N`, joined by commas, `#` in it replaced by the number;
/// - `{{char:N}}`: the character with code point `N`.
///
/// # Errors
/// Names the template that is unknown, not closed, or too large.
pub fn expand(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        out.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        let end = inner.find("}}").ok_or_else(|| format!("the template `{}` is not closed by `}}}}`", short(&rest[at..])))?;
        one(&inner[..end], &mut out)?;
        rest = &inner[end + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

fn one(template: &str, out: &mut String) -> Result<(), String> {
    let wrong = || format!("no such template: `{{{{{}}}}}` (expected repeat:TEXT:N, list:TEXT:N or char:N)", short(template));
    let (kind, rest) = template.split_once(':').ok_or_else(wrong)?;
    let (text, count) = if kind == "char" { ("", rest) } else { rest.rsplit_once(':').ok_or_else(wrong)? };
    let count: usize = count.parse().map_err(|_| wrong())?;
    // A number has at most 7 digits here, so this bounds both kinds before anything is built.
    if kind != "char" && count.saturating_mul(text.len() + 9) > EXPANDED_BYTES_MAX * 4 {
        return Err(format!("`{{{{{}}}}}` expands to more than {EXPANDED_BYTES_MAX} bytes", short(template)));
    }
    match kind {
        "repeat" => out.push_str(&text.repeat(count)),
        "list" => {
            let parts: Vec<String> = (1..=count).map(|n| text.replace('#', &n.to_string())).collect();
            out.push_str(&parts.join(", "));
        }
        "char" => out.push(u32::try_from(count).ok().and_then(char::from_u32).ok_or_else(wrong)?),
        _ => return Err(wrong()),
    }
    if out.len() > EXPANDED_BYTES_MAX {
        return Err(format!("a line expands to more than {EXPANDED_BYTES_MAX} bytes"));
    }
    Ok(())
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_expands_and_a_wrong_one_is_named() {
        assert_eq!(expand("a{{repeat:xy:3}}b{{char:10}}c").unwrap(), "axyxyxyb\nc");
        assert_eq!(expand("{{list:c# INT:3}}").unwrap(), "c1 INT, c2 INT, c3 INT");
        assert_eq!(expand("{{list::0}}{{repeat:::2}}").unwrap(), "::");
        assert_eq!(expand("{{repeat:x:2000001}}").unwrap().len(), 2_000_001);
        for wrong in ["{{repeat:x}}", "{{repeat:x:y}}", "{{time:1}}", "{{char:1114112}}", "{{open", "{{}}"] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
        assert!(expand("{{repeat:x:999999999999}}").unwrap_err().contains("more than"));
        assert!(expand("{{repeat:x:3000000}}{{repeat:x:3000000}}{{repeat:x:3000000}}").unwrap_err().contains("more than"));
    }
}
