//! A file as rows of cells, whatever kind of file it is.

use super::fault::Fault;
use super::{csv, xlsx};
use crate::text::Text;
use jiff::civil::DateTime;
use std::fs::File;
use std::io::{Read, Seek};

/// What is read of a line: no venue's list has more columns.
pub(super) const MAX_COLUMNS: usize = 256;

/// A cell, as far as a file says what it is: a text, or in a spreadsheet a number or a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Cell {
    #[default]
    Empty,
    Text(String),
    Number(f64),
    Moment(DateTime),
}

impl Cell {
    pub(super) fn text(text: &str) -> Self {
        if wire::trim(text).is_empty() { Self::Empty } else { Self::Text(text.to_owned()) }
    }
}

/// Why reading ended before the file did.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The file cannot be read as what it claims to be, or has no use as a list of orders.
    Faults(Vec<Fault>),
    /// Whoever wanted the rows has gone.
    Unwanted,
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::Faults(vec![fault])
    }
}

/// Takes a line's number, as a spreadsheet shows it, and its cells.
pub(super) type EachRow<'a> = dyn FnMut(i64, &[Cell]) -> Result<(), Stopped> + 'a;

/// Which kind of file it is, told by its first bytes: names and content types are often wrong.
#[derive(Debug)]
pub(super) enum Table {
    Csv(csv::Csv),
    Xlsx(Box<xlsx::Xlsx>),
}

impl Table {
    /// Looks at the file as a whole, without keeping it.
    pub(super) fn open(mut file: File) -> Result<Self, Stopped> {
        let mut start = [0; 8];
        let mut filled = 0;
        while filled < start.len() {
            match file.read(&mut start[filled..]).map_err(|_| Fault::file(Text::FileUnreadable))? {
                0 => break,
                n => filled += n,
            }
        }
        file.rewind().map_err(|_| Fault::file(Text::FileUnreadable))?;
        match &start[..filled] {
            [] => Err(Fault::file(Text::FileEmpty).into()),
            // Old Excel files, and new ones behind a password, are OLE compound files.
            [0xd0, 0xcf, 0x11, 0xe0, ..] => Err(Fault::file(Text::FileOldExcel).into()),
            [b'P', b'K', 3 | 5, 4 | 6, ..] => xlsx::Xlsx::open(file).map(|book| Self::Xlsx(Box::new(book))),
            _ => csv::Csv::open(file).map(Self::Csv),
        }
    }

    /// About how many lines there are.
    pub(super) fn expected_lines(&self) -> i64 {
        match self {
            Self::Csv(csv) => csv.expected_lines(),
            Self::Xlsx(xlsx) => xlsx.expected_lines(),
        }
    }

    /// Reads line by line. Lines without any content are left out.
    pub(super) fn read(self, each: &mut EachRow<'_>) -> Result<(), Stopped> {
        match self {
            Self::Csv(csv) => csv.read(each),
            Self::Xlsx(xlsx) => xlsx.read(each),
        }
    }
}
