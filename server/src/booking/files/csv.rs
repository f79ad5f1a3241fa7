//! CSV: which encoding and which delimiter, and then record by record.

use super::columns;
use super::fault::Fault;
use super::table::{Cell, EachRow, MAX_COLUMNS, Stopped};
use crate::text::Text;
use encoding_rs::{CoderResult, Decoder, Encoding, GB18030, UTF_8};
use std::fs::File;
use std::io::{self, Read, Seek};

/// The largest CSV file, bytes: a quotation mark that is never closed makes one cell of all that follows.
const MAX_FILE: u64 = 256 << 20;
/// So much of a file is looked at for its delimiter.
const SAMPLE: u64 = 64 << 10;

/// A text file of a known encoding and delimiter.
#[derive(Debug)]
pub(super) struct Csv {
    file: File,
    encoding: &'static Encoding,
    delimiter: u8,
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
        let mut csv = Self { file, encoding, delimiter: b',', lines };
        let mut sample = Vec::new();
        csv.text()?.take(SAMPLE).read_to_end(&mut sample).map_err(|_| unreadable())?;
        // It may end within a character.
        let sample = String::from_utf8_lossy(&sample);
        if wire::trim(&sample).is_empty() && size < SAMPLE {
            return Err(Fault::file(Text::FileEmpty).into());
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
        let delimiter = self.delimiter;
        let mut reader = reader(self.text()?, delimiter);
        let mut record = csv::StringRecord::new();
        // A spreadsheet shows a record as one line, however many lines a cell of it has.
        let mut within_cells = 0;
        let mut row = Vec::new();
        while reader.read_record(&mut record).map_err(|_| unreadable())? {
            within_cells += record.iter().map(|cell| count(cell.as_bytes(), b'\n')).sum::<i64>();
            let line = i64::try_from(reader.position().line()).unwrap_or(i64::MAX) - 1 - within_cells;
            row.clear();
            row.extend(record.iter().take(MAX_COLUMNS).map(Cell::text));
            if row.iter().any(|cell| *cell != Cell::Empty) {
                each(line, &row)?;
            }
        }
        Ok(())
    }
}

/// Every line ends with `\n` by then, so that the reader's own count of lines is right after each record.
fn reader<R: Read>(text: R, delimiter: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .terminator(csv::Terminator::Any(b'\n'))
        .has_headers(false)
        .flexible(true)
        .from_reader(text)
}

fn first_record(sample: &str, delimiter: u8) -> Vec<Cell> {
    let records = reader(sample.as_bytes(), delimiter).into_records();
    let cells = |record: csv::StringRecord| record.iter().take(MAX_COLUMNS).map(Cell::text).collect::<Vec<_>>();
    let mut rows = records.map_while(Result::ok).map(cells);
    rows.find(|row| row.iter().any(|cell| *cell != Cell::Empty)).unwrap_or_default()
}

fn count(bytes: &[u8], byte: u8) -> i64 {
    i64::try_from(bytes.iter().filter(|b| **b == byte).count()).unwrap_or(i64::MAX)
}

/// The encoding, and how many lines there are: by a byte-order mark; else UTF-8, if that is what it is; else GB18030, which
/// Chinese spreadsheets write. A UTF-8 file with some broken characters stays one: its lines are named, not garbled.
fn encoding_of(file: &mut File) -> io::Result<(&'static Encoding, i64)> {
    let mut buffer = vec![0; 64 << 10];
    // Bytes of a character that the last piece has cut.
    let mut carried = 0;
    let (mut lines, mut broken, mut ideographs) = (0, 0_u64, 0_u64);
    let mut first = true;
    loop {
        let read = file.read(&mut buffer[carried..])?;
        let piece = &buffer[..carried + read];
        if first && let Some((encoding, _)) = Encoding::for_bom(piece) {
            return Ok((encoding, i64::try_from(file.metadata()?.len() / 60).unwrap_or(i64::MAX)));
        }
        first = false;
        let mut rest = piece;
        carried = loop {
            let (valid, next) = match std::str::from_utf8(rest) {
                Ok(_) => (rest, None),
                Err(error) => (&rest[..error.valid_up_to()], Some(error)),
            };
            lines += count(valid, b'\n');
            ideographs += valid.iter().filter(|b| **b >= 0xe0).count() as u64;
            let after = &rest[valid.len()..];
            match next.map(|error| error.error_len()) {
                None => break 0,
                // Cut by the end of the piece, or of the file.
                Some(None) if read > 0 => break after.len(),
                Some(None) => {
                    broken += 1;
                    break 0;
                }
                Some(Some(bytes)) => {
                    broken += 1;
                    rest = &after[bytes..];
                }
            }
        };
        if read == 0 {
            return Ok((if broken == 0 || ideographs > broken { UTF_8 } else { GB18030 }, lines));
        }
        let start = piece.len() - carried;
        let end = piece.len();
        buffer.copy_within(start..end, 0);
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
            text += &format!("BK{n},{}\r\n", "欧".repeat(n % 7 + 1));
        }
        for bytes in [text.as_bytes(), &GB18030.encode(&text).0] {
            let rows = rows(bytes);
            assert_eq!(rows.len(), 20_001);
            for (n, (line, cells)) in rows.iter().skip(1).enumerate() {
                assert_eq!((*line, cells[1].chars().count()), (n as i64 + 2, n % 7 + 1));
                assert!(cells[1].chars().all(|c| c == '欧'));
            }
        }
    }
}
