//! CSV: which encoding and which delimiter, and then record by record.

use super::columns;
use super::fault::Fault;
use super::table::{Cell, EachRow, MAX_COLUMNS, Stopped};
use crate::text::Text;
use encoding_rs::{CoderResult, Decoder, Encoding, GB18030, UTF_8};
use std::fs::File;
use std::io::{self, Read, Seek};

/// The largest CSV file, bytes.
const MAX_FILE: u64 = 256 << 20;
/// The largest record, bytes: a quotation mark that is never closed makes one cell of all that follows.
const MAX_RECORD: usize = 1 << 20;
/// The most cells of a record, as in a spreadsheet: one of nothing but delimiters costs more in memory than in the file.
const MAX_CELLS: usize = 16_384;
/// So much of a file is looked at for its delimiter.
const SAMPLE: u64 = 64 << 10;
/// Bytes of a run of characters that are not ASCII which are looked at together.
const MAX_RUN: usize = 12 << 10;

/// A text file of a known encoding and delimiter.
#[derive(Debug)]
pub(super) struct Csv {
    file: File,
    encoding: &'static Encoding,
    delimiter: u8,
    /// Bytes of a first line that names the delimiter, and is none of the table's.
    preface: usize,
    lines: i64,
}

fn unreadable() -> Fault {
    Fault::file(Text::FileUnreadable)
}

impl Csv {
    pub(super) fn open(mut file: File) -> Result<Self, Stopped> {
        let size = file.metadata().map_err(|_| unreadable())?.len();
        if size > MAX_FILE {
            return Err(Fault::file(Text::FileUnpacksTooLarge).into());
        }
        let (encoding, lines) = encoding_of(&mut file).map_err(|_| unreadable())?;
        let mut csv = Self { file, encoding, delimiter: b',', preface: 0, lines };
        let mut sample = Vec::new();
        csv.text()?.take(SAMPLE).read_to_end(&mut sample).map_err(|_| unreadable())?;
        // It may end within a character.
        let sample = String::from_utf8_lossy(&sample);
        if wire::trim(&sample).is_empty() && size < SAMPLE {
            return Err(Fault::file(Text::FileEmpty).into());
        }
        if let Some((preface, delimiter)) = named_delimiter(&sample) {
            return Ok(Self { preface, delimiter, ..csv });
        }
        // The one by which most columns get a name that is known.
        let known = |delimiter: &u8| columns::known_names(&first_record(&sample, *delimiter));
        csv.delimiter = [b',', b';', b'\t'].into_iter().rev().max_by_key(known).unwrap_or(b',');
        Ok(csv)
    }

    pub(super) fn expected_lines(&self) -> i64 {
        self.lines
    }

    fn text(&mut self) -> Result<AsUtf8<'_>, Stopped> {
        self.file.rewind().map_err(|_| unreadable())?;
        Ok(AsUtf8::new(&mut self.file, self.encoding))
    }

    pub(super) fn read(mut self, each: &mut EachRow<'_>) -> Result<(), Stopped> {
        let (delimiter, preface) = (self.delimiter, self.preface);
        let mut text = self.text()?;
        text.read_exact(&mut vec![0; preface]).map_err(|_| unreadable())?;
        let mut records = Records::new(text, delimiter);
        // A spreadsheet shows a record as one line, however many lines a cell of it has.
        let mut within_cells = 0;
        let mut row = Vec::new();
        loop {
            let line = |records: &Records<_>, within_cells| {
                i64::try_from(records.reader.line()).unwrap_or(i64::MAX) - 1 - within_cells
            };
            match records.next().map_err(|_| unreadable())? {
                Next::End => return Ok(()),
                Next::TooLarge(line_ends) => {
                    let line = line(&records, within_cells + line_ends) + 1;
                    return Err(Fault::new(Some(line), None, Text::RecordTooLarge).into());
                }
                Next::Record => {}
            }
            within_cells += records.cells().map(|cell| count(cell, b'\n')).sum::<i64>();
            row.clear();
            row.extend(records.cells().take(MAX_COLUMNS).map(|cell| Cell::text(&String::from_utf8_lossy(cell))));
            if row.iter().any(|cell| *cell != Cell::Empty) {
                each(line(&records, within_cells), &row)?;
            }
        }
    }
}

/// `sep=;`, by which Excel is told the delimiter; how long that line is.
fn named_delimiter(sample: &str) -> Option<(usize, u8)> {
    let (line, _) = sample.split_once('\n')?;
    let bare = line.trim_end_matches([' ', ',', ';']).strip_prefix('"').and_then(|line| line.strip_suffix('"'));
    let (name, delimiter) = bare.unwrap_or(line).split_once('=')?;
    let delimiter = *delimiter.as_bytes().first()?;
    let taken = name.eq_ignore_ascii_case("sep") && matches!(delimiter, b',' | b';' | b'\t' | b'|');
    taken.then_some((line.len() + 1, delimiter))
}

/// What comes next of a file.
enum Next {
    Record,
    /// A record beyond what is kept of one; and how many line ends are in what was read of it.
    TooLarge(i64),
    End,
}

/// Records, one after the other in the same memory.
struct Records<R> {
    text: R,
    reader: csv_core::Reader,
    raw: Vec<u8>,
    raw_from: usize,
    raw_to: usize,
    record: Vec<u8>,
    ends: Vec<usize>,
    cells: usize,
}

impl<R: Read> Records<R> {
    /// Every line ends with `\n` by then, so that the reader's own count of lines is right after each record.
    fn new(text: R, delimiter: u8) -> Self {
        let terminator = csv_core::Terminator::Any(b'\n');
        let reader = csv_core::ReaderBuilder::new().delimiter(delimiter).terminator(terminator).build();
        let (record, ends) = (vec![0; MAX_RECORD], vec![0; MAX_CELLS]);
        Self { text, reader, raw: vec![0; 16 << 10], raw_from: 0, raw_to: 0, record, ends, cells: 0 }
    }

    fn next(&mut self) -> io::Result<Next> {
        use csv_core::ReadRecordResult::{End, InputEmpty, OutputEndsFull, OutputFull, Record};
        let mut length = 0;
        self.cells = 0;
        loop {
            if self.raw_from == self.raw_to {
                self.raw_from = 0;
                self.raw_to = self.text.read(&mut self.raw)?;
            }
            let raw = &self.raw[self.raw_from..self.raw_to];
            let (output, ends) = (&mut self.record[length..], &mut self.ends[self.cells..]);
            let (result, read, written, cells) = self.reader.read_record(raw, output, ends);
            self.raw_from += read;
            length += written;
            self.cells += cells;
            match result {
                InputEmpty => {}
                Record => return Ok(Next::Record),
                End => return Ok(Next::End),
                OutputFull | OutputEndsFull => return Ok(Next::TooLarge(count(&self.record[..length], b'\n'))),
            }
        }
    }

    /// The cells of the record that was read last.
    fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends[..self.cells]).map(|(start, end)| &self.record[start..*end])
    }
}

fn first_record(sample: &str, delimiter: u8) -> Vec<Cell> {
    let mut records = Records::new(sample.as_bytes(), delimiter);
    while let Ok(Next::Record) = records.next() {
        let cells = records.cells().take(MAX_COLUMNS).map(|cell| Cell::text(&String::from_utf8_lossy(cell)));
        let row: Vec<Cell> = cells.collect();
        if row.iter().any(|cell| *cell != Cell::Empty) {
            return row;
        }
    }
    Vec::new()
}

fn count(bytes: &[u8], byte: u8) -> i64 {
    i64::try_from(bytes.iter().filter(|b| **b == byte).count()).unwrap_or(i64::MAX)
}

/// The encoding, and how many lines there are: by a byte-order mark; else UTF-8, if that is what it is; else GB18030, which
/// Chinese spreadsheets write, if that is plainly what it is. Any other file is read as UTF-8, whose broken characters are
/// named by their lines: a guess would garble names that nobody looks at again.
fn encoding_of(file: &mut File) -> io::Result<(&'static Encoding, i64)> {
    let mut buffer = vec![0; 64 << 10];
    let (mut lines, mut runs, mut run) = (0, Runs::default(), Vec::new());
    let mut first = true;
    loop {
        let mut read = 0;
        // As a whole, so that the first piece has the whole byte-order mark.
        while read < buffer.len() {
            match file.read(&mut buffer[read..])? {
                0 => break,
                n => read += n,
            }
        }
        let piece = &buffer[..read];
        if first && let Some((encoding, _)) = Encoding::for_bom(piece) {
            return Ok((encoding, i64::try_from(file.metadata()?.len() / 60).unwrap_or(i64::MAX)));
        }
        first = false;
        lines += count(piece, b'\n');
        for byte in piece {
            if byte.is_ascii() || run.len() == MAX_RUN {
                runs.judge(&run);
                run.clear();
            }
            if !byte.is_ascii() {
                run.push(*byte);
            }
        }
        if read == 0 {
            runs.judge(&run);
            return Ok((if runs.are_gb18030() { GB18030 } else { UTF_8 }, lines));
        }
    }
}

/// What the runs of characters beyond ASCII look like: how many of them are nothing but ...
#[derive(Debug, Default)]
struct Runs {
    /// ... UTF-8, and not common characters of GB18030 at the same time.
    utf_8: u64,
    /// ... common characters of GB18030, two bytes each, and no UTF-8.
    gb18030: u64,
    /// ... either: `é` of UTF-8 is 茅 of GB18030, and every tenth run or so of GB18030 could be UTF-8.
    either: u64,
}

impl Runs {
    /// A run that is neither proves nothing: a broken character, another encoding, or a rare character of GB18030.
    fn judge(&mut self, run: &[u8]) {
        let common = |pair: &[u8]| matches!(pair, [0xa1..=0xf7, 0xa1..=0xfe]);
        if run.is_empty() {
            return;
        }
        match (std::str::from_utf8(run).is_ok(), run.chunks(2).all(common)) {
            (true, false) => self.utf_8 += 1,
            (false, true) => self.gb18030 += 1,
            (true, true) => self.either += 1,
            (false, false) => {}
        }
    }

    fn are_gb18030(&self) -> bool {
        self.gb18030 > self.utf_8 && self.gb18030 * 4 >= self.either
    }
}

/// A text as UTF-8, without its byte-order mark, every line ended by `\n`. What cannot be read becomes U+FFFD, which no
/// cell may hold.
struct AsUtf8<'a> {
    file: &'a mut File,
    decoder: Decoder,
    raw: Vec<u8>,
    raw_from: usize,
    raw_to: usize,
    text: Vec<u8>,
    text_from: usize,
    text_to: usize,
    after_cr: bool,
    ended: bool,
}

impl<'a> AsUtf8<'a> {
    fn new(file: &'a mut File, encoding: &'static Encoding) -> Self {
        Self {
            file,
            decoder: encoding.new_decoder_with_bom_removal(),
            raw: vec![0; 16 << 10],
            raw_from: 0,
            raw_to: 0,
            text: vec![0; 64 << 10],
            text_from: 0,
            text_to: 0,
            after_cr: false,
            ended: false,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        while self.text_from == self.text_to && !self.ended {
            if self.raw_from == self.raw_to {
                self.raw_from = 0;
                self.raw_to = self.file.read(&mut self.raw)?;
            }
            let last = self.raw_to == 0;
            // One byte is left for the last line's end.
            let room = self.text.len() - 1;
            let raw = &self.raw[self.raw_from..self.raw_to];
            let (result, read, written, _) = self.decoder.decode_to_utf8(raw, &mut self.text[..room], last);
            self.raw_from += read;
            (self.text_from, self.text_to) = (0, self.unify_line_ends(written));
            if last && result == CoderResult::InputEmpty {
                self.ended = true;
                self.text[self.text_to] = b'\n';
                self.text_to += 1;
            }
        }
        Ok(())
    }

    /// `\r\n` and a lone `\r` become `\n`.
    fn unify_line_ends(&mut self, length: usize) -> usize {
        let mut to = 0;
        for from in 0..length {
            let byte = self.text[from];
            let within_pair = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            if !within_pair {
                self.text[to] = if byte == b'\r' { b'\n' } else { byte };
                to += 1;
            }
        }
        to
    }
}

impl Read for AsUtf8<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let bytes = &self.text[self.text_from..self.text_to];
        let n = bytes.len().min(into.len());
        into[..n].copy_from_slice(&bytes[..n]);
        self.text_from += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn rows(bytes: &[u8]) -> Vec<(i64, Vec<String>)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        let mut rows = Vec::new();
        let text = |cell: &Cell| if let Cell::Text(text) = cell { text.clone() } else { String::new() };
        let mut each = |line, cells: &[Cell]| {
            rows.push((line, cells.iter().map(text).collect()));
            Ok(())
        };
        Csv::open(file).unwrap().read(&mut each).unwrap();
        rows
    }

    #[test]
    fn lines_are_numbered_as_a_spreadsheet_shows_them() {
        for end in ["\n", "\r\n", "\r"] {
            for last in ["", end] {
                let text = ["orderNo,x", "\"a", "b\",1", "", "", "c,\"2", "", "3\"", ",", "d,4"].join(end) + last;
                let lines: Vec<i64> = rows(text.as_bytes()).iter().map(|row| row.0).collect();
                assert_eq!(lines, [1, 2, 5, 7], "{end:?} {last:?}");
            }
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_name() {
        let utf16: Vec<u8> = "\u{feff}orderNo\t姓名\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [&b"\xef\xbb\xbforderNo\t\xe5\xa7\x93\xe5\x90\x8d\n"[..], &utf16] {
            assert_eq!(rows(bytes), [(1, vec!["orderNo".to_owned(), "姓名".to_owned()])]);
        }
    }

    #[test]
    fn a_file_of_neither_encoding_is_not_guessed_at() {
        let cells = |bytes: &[u8]| rows(bytes).into_iter().flat_map(|row| row.1).collect::<Vec<_>>();
        for (bytes, want) in [
            (&b"orderNo\nJos\xc3\xa9\nM\xfcller\n"[..], ["José", "M\u{fffd}ller"]),
            (
                b"orderNo\nJos\xc3\xa9 Jos\xc3\xa9 Jos\xc3\xa9 Jos\xc3\xa9 Jos\xc3\xa9\n\xc4\xf6\n",
                ["José José José José José", "\u{fffd}\u{fffd}"],
            ),
            (b"orderNo\nM\xfcller\nx\n", ["M\u{fffd}ller", "x"]),
            ("orderNo\n张伟\n王\u{e9}\n".as_bytes(), ["张伟", "王é"]),
            // Of `李四` the last byte is lost.
            (b"orderNo\n\xe6\x9d\x8e\xe5\x9b\nx\n", ["李\u{fffd}", "x"]),
            // GB18030: two characters, of which the second could be one of UTF-8.
            (b"orderNo\n\xd5\xc5\xce\xb0\nx\n", ["张伟", "x"]),
        ] {
            assert_eq!(cells(bytes)[1..], want, "{bytes:?}");
        }
    }

    #[test]
    fn ordinary_gb18030_is_taken_for_what_it_is() {
        // 联通 alone could be UTF-8; 喆, 镕 and 䶮 are beyond the common characters.
        for name in ["联通", "陶喆", "朱镕基", "䶮", "欧阳娜娜", "（张伟）", "José"] {
            let text = format!("订单号,姓名,人数,预约时间\nBK1,{name},1,2\n");
            let (bytes, _, _) = GB18030.encode(&text);
            assert_eq!(rows(&bytes)[1].1[1], name);
        }
    }

    #[test]
    fn a_record_has_an_end() {
        let refused = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            match Csv::open(file).unwrap().read(&mut |_, _| Ok(())) {
                Err(Stopped::Faults(faults)) => faults.into_iter().map(|fault| (fault.line, fault.en)).collect(),
                _ => Vec::new(),
            }
        };
        let want = |line| vec![(Some(line), Text::RecordTooLarge.say(crate::text::Lang::En).to_owned())];
        let commas = b",".repeat(MAX_CELLS);
        assert_eq!(refused(&[b"a,b\n\"x\ny\",", &commas[..]].concat()), want(2));
        assert_eq!(refused(&[b"a,b\n", &commas[1..]].concat()), []);
        assert_eq!(refused(&[b"a,b\nx,1\ny,\"2", &b"\n".repeat(MAX_RECORD)[..]].concat()), want(3));
    }

    #[test]
    fn a_first_line_may_name_the_delimiter() {
        for preface in ["sep=;\r\n", "\u{feff}SEP=;\n", "\"sep=;\"\n"] {
            let rows = rows(format!("{preface}orderNo;a,b\n1;2\n").as_bytes());
            assert_eq!(rows, [(1, vec!["orderNo".to_owned(), "a,b".to_owned()]), (2, vec!["1".into(), "2".into()])]);
        }
        assert_eq!(rows(b"sep=x\norderNo;b\n").len(), 2);
    }

    #[test]
    fn a_broken_character_of_utf_8_is_shown_and_garbles_no_other() {
        let mut bytes = "orderNo,姓名\nBK1,张三\nBK2,李四\n".as_bytes().to_vec();
        let cut = bytes.len() - 2;
        bytes.remove(cut);
        assert_eq!(rows(&bytes)[1].1[1], "张三");
        assert_eq!(rows(&bytes)[2].1[1], "李\u{fffd}");
        let (gb, _, _) = GB18030.encode("订单号,姓名\nBK1,欧阳娜娜\nBK2,䶮\n");
        assert_eq!(rows(&gb)[1].1[1], "欧阳娜娜");
        assert_eq!(rows(&gb)[2].1[1], "䶮");
    }

    /// However the pieces fall: a character, a pair of line ends and a record lie across their borders.
    #[test]
    fn long_files_are_read_in_pieces() {
        let mut text = "orderNo,姓名\r\n".to_owned();
        for n in 0..20_000 {
            text += &format!("BK{n},{}\r\n", "张".repeat(n % 7 + 1));
        }
        for bytes in [text.as_bytes(), &GB18030.encode(&text).0] {
            let rows = rows(bytes);
            assert_eq!(rows.len(), 20_001);
            for (n, (line, cells)) in rows.iter().skip(1).enumerate() {
                assert_eq!((*line, cells[1].chars().count()), (n as i64 + 2, n % 7 + 1));
                assert!(cells[1].chars().all(|c| c == '张'));
            }
        }
    }
}
