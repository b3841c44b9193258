//! Quoting for shells, so that what we print can be pasted or evaluated.

use clap::ValueEnum;

/// A family of shells that quote alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// sh, bash, zsh, dash and ksh.
    Sh,
    /// fish.
    Fish,
    /// PowerShell.
    Powershell,
}

impl Shell {
    /// `text` as one word. Left bare if it needs no quotes in any of the shells.
    pub(crate) fn quote(self, text: &str) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=+,".contains(&byte);
        if self != Self::Powershell && !text.is_empty() && text.bytes().all(plain) {
            return text.to_owned();
        }
        match self {
            Self::Sh => format!("'{}'", text.replace('\'', r"'\''")),
            Self::Fish => format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'")),
            Self::Powershell => format!("'{}'", text.replace('\'', "''")),
        }
    }

    /// The statement that sets an environment variable for what the shell starts.
    pub(crate) fn export(self, name: &str, value: &str) -> String {
        let value = self.quote(value);
        match self {
            Self::Sh => format!("export {name}={value}"),
            Self::Fish => format!("set -gx {name} {value}"),
            Self::Powershell => format!("$env:{name} = {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn sh_reads_back_what_was_quoted() {
        for text in ["", "plain", "two words", "it's", "$HOME `id` \"x\" \\", "a\nb", "~", "é", "!x", "a;b|c&d<e>f(g)*?[h]#{i}"] {
            let script = format!("{}; printf %s \"$HEARTH_TEST\"", Shell::Sh.export("HEARTH_TEST", text));
            let output = Command::new("sh").arg("-c").arg(&script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{script}");
        }
    }

    #[test]
    fn fish_and_powershell_have_their_own_rules() {
        assert_eq!(Shell::Fish.export("A", r"it's \n"), r"set -gx A 'it\'s \\n'");
        assert_eq!(Shell::Powershell.export("A", "it's $x"), "$env:A = 'it''s $x'");
        assert_eq!(Shell::Powershell.export("A", "plain"), "$env:A = 'plain'");
    }
}
