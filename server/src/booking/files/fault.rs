//! What is wrong with a file, a line or a cell.

use crate::text::{Lang, Text};

/// Faults that are told one by one; of further ones only how many there are.
pub(super) const TOLD: usize = 100;

/// A fault. Holds nothing of the cell: it may be a phone number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// As a spreadsheet numbers it; `None`: the file as a whole.
    pub(super) line: Option<i64>,
    /// The column's name.
    pub(super) field: Option<&'static str>,
    pub(super) zh: String,
    pub(super) en: String,
}

impl Fault {
    /// A fault of the file as a whole.
    pub(super) fn file(text: Text) -> Self {
        Self::new(None, None, text)
    }

    pub(super) fn new(line: Option<i64>, field: Option<&'static str>, text: Text) -> Self {
        Self { line, field, zh: text.say(Lang::Zh).to_owned(), en: text.say(Lang::En).to_owned() }
    }

    /// Puts a word in the place `{name}` of the text, in each language.
    pub(super) fn with(mut self, name: &str, zh: &str, en: &str) -> Self {
        self.zh = self.zh.replace(name, zh);
        self.en = self.en.replace(name, en);
        self
    }
}

/// The first faults, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) first: Vec<Fault>,
    pub(super) count: i64,
}

impl Faults {
    pub(super) fn push(&mut self, fault: Fault) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push(fault);
        }
    }

    pub(super) fn none(&self) -> bool {
        self.count == 0
    }
}
