//! Tables of text: aligned for people, tab-separated for programs.

/// Columns of a cell on a terminal before it is cut; `--json` always has all of it.
const CELL_WIDTH_MAX: usize = 100;

/// Rows under named columns. Each row is as long as `columns`.
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; a short one is filled with empty cells, a long one cut.
    pub(crate) fn push<S: Into<String>>(&mut self, row: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = row.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Columns padded with spaces, a rule under the heads, long cells cut with `…`.
    pub(crate) fn aligned(&self) -> String {
        let cut = |cells: &[String]| cells.iter().map(|cell| cut(&visible(cell))).collect::<Vec<_>>();
        let heads = cut(&self.columns);
        let rows: Vec<_> = self.rows.iter().map(|row| cut(row)).collect();
        let mut widths: Vec<usize> = heads.iter().map(|head| width(head)).collect();
        for row in &rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(cell));
            }
        }
        let rule = widths.iter().map(|width| "─".repeat(*width)).collect();
        let mut text = String::new();
        for cells in [&heads, &rule].into_iter().chain(&rows) {
            let mut line = String::new();
            for (cell, widest) in cells.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(widest - width(cell) + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Heads and rows, one a line, cells separated by tabs. Nothing is cut; tabs and line ends
    /// inside a cell are written `\t` and `\n`, so a line is always a row.
    pub(crate) fn tab_separated(&self) -> String {
        let mut text = String::new();
        for cells in std::iter::once(&self.columns).chain(&self.rows) {
            let cells: Vec<_> = cells.iter().map(|cell| visible(cell)).collect();
            text.push_str(&cells.join("\t"));
            text.push('\n');
        }
        text
    }
}

/// `text` with its control characters written out, so that a stored value cannot steer the terminal.
fn visible(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}

fn cut(text: &str) -> String {
    if width(text) <= CELL_WIDTH_MAX {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > CELL_WIDTH_MAX {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Columns of a character on a terminal, by the large blocks of Unicode: marks that combine take
/// none; East Asian wide characters and emoji take two.
fn char_width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 2]]) -> Table {
        let mut table = Table::new(["name", "n"]);
        for row in rows {
            table.push(*row);
        }
        table
    }

    #[test]
    fn columns_line_up_under_wide_and_combining_characters() {
        let text = table(&[["a", "1"], ["日本", "2"], ["e\u{301}e\u{301}", "3"]]).aligned();
        assert_eq!(text, "name  n\n────  ─\na     1\n日本  2\ne\u{301}e\u{301}    3\n");
    }

    #[test]
    fn a_long_cell_is_cut_on_a_terminal_only() {
        let long = "x".repeat(CELL_WIDTH_MAX + 1);
        let table = table(&[[&long, ""]]);
        let cut = format!("{}…", "x".repeat(CELL_WIDTH_MAX - 1));
        assert_eq!(table.aligned().lines().last().unwrap(), cut);
        assert!(table.tab_separated().contains(&long));
        let fits = "x".repeat(CELL_WIDTH_MAX);
        assert_eq!(super::cut(&fits), fits);
    }

    #[test]
    fn a_stored_value_can_neither_steer_the_terminal_nor_break_a_line() {
        let table = table(&[["\u{1b}[2Jx", "a\tb\nc"]]);
        assert_eq!(table.tab_separated(), "name\tn\n\\u{1b}[2Jx\ta\\tb\\nc\n");
        assert!(!table.aligned().contains('\u{1b}'));
    }

    #[test]
    fn a_row_of_the_wrong_length_is_filled_or_cut() {
        let mut table = Table::new(["a", "b"]);
        table.push(["1"]);
        table.push(["1", "2", "3"]);
        assert_eq!(table.tab_separated(), "a\tb\n1\t\n1\t2\n");
    }
}
