//! Compiles the SQLite amalgamation of the pinned `libsqlite3-sys` with Hearth's row meter in it.
//!
//! The meter counts at the same twelve places of the virtual machine as production D1, so that
//! `rows_read` and `rows_written` come out the same. Each insertion names the section and the line
//! it stands at; if SQLite moved one of them, the build stops rather than count wrongly.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// One insertion: inside the section that starts at `section`, after or before the first `anchor`.
struct Edit {
    section: &'static str,
    anchor: &'static str,
    place: Place,
    text: &'static str,
}

enum Place {
    After,
    Before,
    Instead,
}

const READ_ONE: &str = "  p->nRowsRead++;\n";
const WRITTEN_ONE: &str = "  if( !pC->isEphemeral ) p->nRowsWritten++;\n";

const EDITS: [Edit; 17] = [
    Edit {
        section: "\nstruct Vdbe {\n",
        anchor: "  u32 aCounter[9];",
        place: Place::Before,
        text: "  u64 nRowsRead;\n  u64 nRowsWritten;\n",
    },
    Edit {
        section: "\ncase OP_Count:",
        anchor: "    rc = sqlite3BtreeCount(db, pCrsr, &nEntry);\n",
        place: Place::After,
        text: "    p->nRowsRead += (u64)nEntry;\n",
    },
    Edit { section: "\ncase OP_SeekGT:", anchor: "#ifdef SQLITE_TEST\n", place: Place::Before, text: READ_ONE },
    Edit { section: "\ncase OP_NotExists:", anchor: "  pC->seekResult = res;\n", place: Place::After, text: READ_ONE },
    Edit { section: "\ncase OP_Last:", anchor: "  if( pOp->p2>0 ){\n", place: Place::Before, text: READ_ONE },
    Edit { section: "\ncase OP_Rewind:", anchor: "  if( pOp->p2>0 ){\n", place: Place::Before, text: READ_ONE },
    Edit { section: "\ncase OP_Next:", anchor: "    p->aCounter[pOp->p5]++;\n", place: Place::After, text: READ_ONE },
    Edit { section: "\ncase OP_VNext:", anchor: "  res = pModule->xEof(pCur->uc.pVCur);\n", place: Place::Before, text: READ_ONE },
    Edit {
        section: "\ncase OP_Insert:",
        anchor: "  assert( (pOp->p5 & OPFLAG_LASTROWID)==0 || (pOp->p5 & OPFLAG_NCHANGE)!=0 );\n",
        place: Place::After,
        text: WRITTEN_ONE,
    },
    Edit { section: "\ncase OP_Delete:", anchor: "  if( opflags & OPFLAG_NCHANGE ){\n", place: Place::After, text: WRITTEN_ONE },
    Edit {
        section: "\ncase OP_IdxInsert:",
        anchor: "  if( pOp->p5 & OPFLAG_NCHANGE ) p->nChange++;\n",
        place: Place::After,
        text: WRITTEN_ONE,
    },
    Edit {
        section: "\ncase OP_Clear:",
        anchor: "    p->nChange += nChange;\n",
        place: Place::After,
        text: "    p->nRowsWritten += (u64)nChange;\n",
    },
    Edit { section: "\ncase OP_VUpdate:", anchor: "      p->nChange++;\n", place: Place::After, text: "      p->nRowsWritten++;\n" },
    // A row may be a little longer than its longest value: its header needs room. SQLite has one
    // limit for both, so the row's is the value's and HEARTH_ROW_SLACK bytes more.
    Edit {
        section: "\ncase OP_MakeRecord:",
        anchor: "    if( nByte+nZero>db->aLimit[SQLITE_LIMIT_LENGTH] ){\n",
        place: Place::Instead,
        text: "    if( nByte+nZero>(i64)db->aLimit[SQLITE_LIMIT_LENGTH]+HEARTH_ROW_SLACK ){\n",
    },
    // A full database and a full disk both end in SQLITE_FULL; the first gets an extended code of ours.
    Edit {
        section: "\nstatic int getPageNormal(\n",
        anchor: "        rc = SQLITE_FULL;\n",
        place: Place::Instead,
        text: "        rc = SQLITE_FULL | (1<<8);\n",
    },
    // The authorizer is told the new name of a table, so that `_cf_` names are refused there too.
    Edit {
        section: "\nSQLITE_PRIVATE void sqlite3AlterRenameTable(\n",
        anchor: "  if( sqlite3AuthCheck(pParse, SQLITE_ALTER_TABLE, zDb, pTab->zName, 0) ){\n",
        place: Place::Instead,
        text: "  if( sqlite3AuthCheck(pParse, SQLITE_ALTER_TABLE, zDb, pTab->zName, zName) ){\n",
    },
    Edit {
        section: "\n** Return the value of a status counter for a prepared statement\n",
        anchor: "/*\n** Return the SQL associated with a prepared statement\n*/\n",
        place: Place::Before,
        text: "SQLITE_API void hearth_stmt_rows(sqlite3_stmt *pStmt, u64 *pnRead, u64 *pnWritten){\n  Vdbe *v = (Vdbe*)pStmt;\n  *pnRead = v->nRowsRead;\n  *pnWritten = v->nRowsWritten;\n}\nSQLITE_API void hearth_stmt_rows_reset(sqlite3_stmt *pStmt){\n  Vdbe *v = (Vdbe*)pStmt;\n  v->nRowsRead = 0;\n  v->nRowsWritten = 0;\n}\n\n",
    },
];

/// Bytes that a row may be longer than the longest value; `base::Limits` documents it.
const ROW_SLACK: &str = "1023";

const DEFINES: [(&str, &str); 25] = [
    ("HEARTH_ROW_SLACK", ROW_SLACK),
    ("SQLITE_THREADSAFE", "2"),
    ("SQLITE_DEFAULT_MEMSTATUS", "0"),
    ("SQLITE_DEFAULT_FOREIGN_KEYS", "1"),
    ("SQLITE_DEFAULT_WAL_SYNCHRONOUS", "1"),
    ("SQLITE_DEFAULT_PCACHE_INITSZ", "0"),
    ("SQLITE_ENABLE_COLUMN_METADATA", "1"),
    ("SQLITE_ENABLE_DBPAGE_VTAB", "1"),
    ("SQLITE_ENABLE_FTS5", "1"),
    ("SQLITE_ENABLE_MATH_FUNCTIONS", "1"),
    ("SQLITE_ENABLE_NORMALIZE", "1"),
    ("SQLITE_ENABLE_RTREE", "1"),
    ("SQLITE_ENABLE_SNAPSHOT", "1"),
    ("SQLITE_MAX_EXPR_DEPTH", "1000"),
    ("SQLITE_OMIT_SHARED_CACHE", "1"),
    ("SQLITE_OMIT_LOAD_EXTENSION_INIT", "1"),
    ("SQLITE_OMIT_DEPRECATED", "1"),
    ("SQLITE_PRINTF_PRECISION_LIMIT", "100000"),
    ("SQLITE_TEMP_STORE", "1"),
    ("SQLITE_USE_URI", "0"),
    ("HAVE_FDATASYNC", "1"),
    ("HAVE_USLEEP", "1"),
    ("HAVE_LOCALTIME_R", "1"),
    ("HAVE_ISNAN", "1"),
    ("HAVE_STRCHRNUL", "1"),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HEARTH_SQLITE_AMALGAMATION");
    let amalgamation = amalgamation();
    println!("cargo:rerun-if-changed={}", amalgamation.display());
    let mut source = fs::read_to_string(&amalgamation).expect("the amalgamation is readable UTF-8");
    for edit in &EDITS {
        source = apply(&source, edit);
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let patched = out.join("sqlite3_metered.c");
    fs::write(&patched, source).expect("OUT_DIR is writable");

    let mut build = cc::Build::new();
    build.file(&patched).include(amalgamation.parent().expect("a file has a folder")).warnings(false).cargo_metadata(false).opt_level(2);
    for (name, value) in DEFINES {
        build.define(name, value);
    }
    build.compile("hearth_sqlite");
    println!("cargo:rustc-link-search=native={}", out.display());
    // Whole-archive, so that the linker keeps it although rusqlite, which needs it, comes later.
    println!("cargo:rustc-link-lib=static:+whole-archive=hearth_sqlite");
    println!("cargo:rustc-link-lib=m");
}

/// Finds `sqlite3.c` in the source of the pinned `libsqlite3-sys`: in Cargo's registry folder, or,
/// where the sources are vendored, where `cargo metadata` says.
fn amalgamation() -> PathBuf {
    if let Some(path) = env::var_os("HEARTH_SQLITE_AMALGAMATION") {
        return PathBuf::from(path);
    }
    from_registry().or_else(from_metadata).unwrap_or_else(|| {
        panic!("the source of libsqlite3-sys {VERSION} was not found; set HEARTH_SQLITE_AMALGAMATION to the path of its sqlite3/sqlite3.c")
    })
}

/// The version that the workspace pins.
const VERSION: &str = "0.40.0";

fn from_registry() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))?;
    let sources = fs::read_dir(home.join("registry/src")).ok()?;
    sources
        .filter_map(Result::ok)
        .map(|entry| entry.path().join(format!("libsqlite3-sys-{VERSION}/sqlite3/sqlite3.c")))
        .find(|path| path.is_file())
}

fn from_metadata() -> Option<PathBuf> {
    let manifest = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    let output =
        Command::new(env::var_os("CARGO")?).args(["metadata", "--format-version", "1", "--manifest-path"]).arg(manifest).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // The one fact that is needed is a path, so the JSON is searched and not parsed.
    let key = "\"manifest_path\":\"";
    text.match_indices(key)
        .filter_map(|(at, _)| text[at + key.len()..].split('"').next())
        .find(|path| path.contains("libsqlite3-sys"))
        .map(|path| Path::new(path).with_file_name("sqlite3").join("sqlite3.c"))
        .filter(|path| path.is_file())
}

/// Applies one edit; panics if its section or anchor is not where it was.
fn apply(source: &str, edit: &Edit) -> String {
    let starts: Vec<usize> = source.match_indices(edit.section).map(|(at, _)| at).collect();
    assert_eq!(starts.len(), 1, "section {:?} stands {} times in the amalgamation, expected once", edit.section, starts.len());
    let start = starts[0];
    let body = &source[start + 1..];
    let end = if edit.section.starts_with("\ncase OP_") {
        start + 1 + body.find("/* Opcode:").expect("another opcode follows")
    } else {
        source.len().min(start + 8_000)
    };
    let found = source[start..end].find(edit.anchor);
    let at = start + found.unwrap_or_else(|| panic!("anchor {:?} is not in section {:?}", edit.anchor, edit.section));
    let after = at + edit.anchor.len();
    let (head, tail) = match edit.place {
        Place::After => (&source[..after], &source[after..]),
        Place::Before => (&source[..at], &source[at..]),
        Place::Instead => (&source[..at], &source[after..]),
    };
    format!("{head}{}{tail}", edit.text)
}
