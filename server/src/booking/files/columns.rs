//! From cells to orders: which column is which, and what each cell must be.

use super::fault::Fault;
use super::table::{Cell, Stopped};
use crate::booking::NewOrder;
use crate::booking::orders::{party_size, visit_at, visitor_name};
use crate::http::extract::{mobile, order_no, task_no};
use crate::text::Text;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use std::borrow::Cow;
use wire::api::OrderStatus;
use wire::{Secret, clean_digits};

/// The columns: name, Chinese name, and whether every file must have it.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("orderNo", "订单号", true),
    ("mobile", "手机号", true),
    ("visitorName", "姓名", true),
    ("partySize", "人数", true),
    ("visitAt", "预约时间", true),
    ("status", "状态", true),
    ("taskNo", "任务号", false),
];

/// What people read for a status, in Chinese.
const STATUS_WORDS: [(OrderStatus, &str); 6] = [
    (OrderStatus::PendingPayment, "待支付"),
    (OrderStatus::Paid, "已支付"),
    (OrderStatus::Consumed, "已核销"),
    (OrderStatus::Refunding, "退款中"),
    (OrderStatus::Refunded, "已退款"),
    (OrderStatus::Cancelled, "已取消"),
];

/// The Chinese word of a status.
pub(super) fn status_word(status: OrderStatus) -> &'static str {
    STATUS_WORDS.iter().find(|(known, _)| *known == status).map_or("", |(_, word)| word)
}

/// Which column has which place in a file.
#[derive(Debug)]
pub(super) struct Columns {
    places: [Option<usize>; 7],
    width: usize,
}

fn column_named(cell: &Cell) -> Option<usize> {
    let Cell::Text(name) = cell else { return None };
    let name = wire::trim(name);
    COLUMNS.iter().position(|(en, zh, _)| en.eq_ignore_ascii_case(name) || *zh == name)
}

/// How many cells of a header are names that are known.
pub(super) fn known_names(header: &[Cell]) -> usize {
    header.iter().filter(|cell| column_named(cell).is_some()).count()
}

impl Columns {
    /// Reads the header. Columns of other names are left alone.
    pub(super) fn of(line: i64, header: &[Cell]) -> Result<Self, Stopped> {
        let mut places = [None; 7];
        let mut faults = Vec::new();
        let fault = |column: usize, text| {
            let (en, zh, _) = COLUMNS[column];
            Fault::new(Some(line), Some(en), text).with("{en}", en, en).with("{zh}", zh, zh)
        };
        for (place, cell) in header.iter().enumerate() {
            if let Some(column) = column_named(cell) {
                if places[column].is_some() {
                    faults.push(fault(column, Text::ColumnTwice));
                }
                places[column] = Some(place);
            }
        }
        let missing = (0..COLUMNS.len()).filter(|column| COLUMNS[*column].2 && places[*column].is_none());
        faults.extend(missing.map(|column| fault(column, Text::ColumnMissing)));
        if faults.is_empty() { Ok(Self { places, width: header.len() }) } else { Err(Stopped::Faults(faults)) }
    }

    /// Whether the file says anything of tasks.
    pub(super) fn has_task(&self) -> bool {
        self.places[6].is_some()
    }

    /// The order of a line, or everything that is wrong with it.
    pub(super) fn order(&self, line: i64, row: &[Cell], zone: &TimeZone) -> Result<NewOrder, Vec<Fault>> {
        if row.iter().skip(self.width).any(|cell| *cell != Cell::Empty) {
            return Err(vec![Fault::new(Some(line), None, Text::RowTooLong)]);
        }
        let cell = |column: usize| {
            self.places[column].and_then(|place| row.get(place)).map_or(Cow::Owned(Cell::Empty), unmarked)
        };
        let mut faults = Vec::new();
        let mut note = |column: usize, text| faults.push(Fault::new(Some(line), Some(COLUMNS[column].0), text));
        let order = (
            order_no_of(&cell(0)).map_err(|text| note(0, text)),
            mobile_of(&cell(1)).map_err(|text| note(1, text)),
            name_of(&cell(2)).map_err(|text| note(2, text)),
            party_of(&cell(3)).map_err(|text| note(3, text)),
            moment_of(&cell(4), zone).map_err(|text| note(4, text)),
            status_of(&cell(5)).map_err(|text| note(5, text)),
            task_of(&cell(6)).map_err(|text| note(6, text)),
        );
        match order {
            (Ok(order_no), Ok(mobile), Ok(visitor_name), Ok(party_size), Ok(visit_at), Ok(status), Ok(task)) => {
                let task_no = self.has_task().then_some(task);
                Ok(NewOrder { order_no, mobile, visitor_name, party_size, visit_at, status, task_no })
            }
            _ => Err(faults),
        }
    }
}

/// Without the apostrophe by which spreadsheets, and our own exports, say that what follows is text: one, in every column,
/// for an export puts one in front of a text that begins with one.
fn unmarked(cell: &Cell) -> Cow<'_, Cell> {
    let Cell::Text(text) = cell else { return Cow::Borrowed(cell) };
    wire::trim(text).strip_prefix('\'').map_or(Cow::Borrowed(cell), |text| Cow::Owned(Cell::text(text)))
}

/// Spreadsheets keep fifteen digits of a number, and write longer ones in their own short form.
const EXACT: f64 = 1e15;

/// A cell that must hold a number which is a name, not an amount: an order's, a task's, a telephone's.
fn digits_of(cell: &Cell) -> Result<String, Text> {
    match cell {
        Cell::Empty => Err(Text::CellEmpty),
        Cell::Moment(_) => Err(Text::CellIsMoment),
        Cell::Number(number) if number.abs() >= EXACT => Err(Text::CellRounded),
        Cell::Number(number) => Ok(number.to_string()),
        Cell::Text(text) if text.contains('\u{fffd}') => Err(Text::CellGarbled),
        Cell::Text(text) => {
            let text = clean_digits(text);
            if is_short_form(&text) { Err(Text::CellRounded) } else { Ok(text) }
        }
    }
}

/// `1.9E+18`: digits, perhaps more of them after a point, and a power of ten.
fn is_short_form(text: &str) -> bool {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.split_once(['E', 'e']).is_some_and(|(number, power)| {
        let (whole, rest) = number.split_once(['.', ',']).unwrap_or((number, "0"));
        power.strip_prefix('+').is_some_and(all_digits) && all_digits(whole) && all_digits(rest)
    })
}

fn order_no_of(cell: &Cell) -> Result<wire::OrderNo, Text> {
    order_no("orderNo", &digits_of(cell)?).map_err(|error| error.text())
}

fn mobile_of(cell: &Cell) -> Result<wire::Mobile, Text> {
    mobile(&Secret::new(digits_of(cell)?)).map_err(|error| error.text())
}

fn task_of(cell: &Cell) -> Result<Option<wire::TaskNo>, Text> {
    if *cell == Cell::Empty {
        return Ok(None);
    }
    task_no("taskNo", &digits_of(cell)?).map(Some).map_err(|_| Text::TaskNoIllFormed)
}

/// A name is data, whatever a spreadsheet would make of it; a line's end within it becomes a space.
fn name_of(cell: &Cell) -> Result<String, Text> {
    let text = match cell {
        Cell::Empty => return Err(Text::CellEmpty),
        Cell::Moment(_) => return Err(Text::CellIsMoment),
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) if text.contains('\u{fffd}') => return Err(Text::CellGarbled),
        Cell::Text(text) => {
            let lines = text.split(['\n', '\r', '\t']).map(wire::trim).filter(|line| !line.is_empty());
            lines.collect::<Vec<_>>().join(" ")
        }
    };
    visitor_name(&text).map_err(|_| Text::NameIllFormed)
}

fn party_of(cell: &Cell) -> Result<i64, Text> {
    let text = match cell {
        Cell::Empty => return Err(Text::CellEmpty),
        Cell::Moment(_) => return Err(Text::CellIsMoment),
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => clean_digits(text),
    };
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits).and_then(party_size).ok_or(Text::PartyIllFormed)
}

fn status_of(cell: &Cell) -> Result<OrderStatus, Text> {
    let text = match cell {
        Cell::Empty => return Err(Text::CellEmpty),
        Cell::Text(text) => wire::trim(text),
        _ => return Err(Text::StatusUnknown),
    };
    let known = OrderStatus::parse(&text.to_ascii_lowercase());
    known.or_else(|| Some(STATUS_WORDS.iter().find(|(_, word)| *word == text)?.0)).ok_or(Text::StatusUnknown)
}

fn moment_of(cell: &Cell, zone: &TimeZone) -> Result<i64, Text> {
    let local = match cell {
        Cell::Empty => return Err(Text::CellEmpty),
        Cell::Moment(moment) => *moment,
        Cell::Number(_) => return Err(Text::MomentIllFormed),
        Cell::Text(text) => civil(text).ok_or(Text::MomentIllFormed)?,
    };
    let moment = zone.to_ambiguous_timestamp(local);
    if matches!(moment.offset(), AmbiguousOffset::Gap { .. }) {
        return Err(Text::MomentSkipped);
    }
    // Of a time that the clocks show twice, the first one.
    let moment = moment.earlier().map_err(|_| Text::MomentIllFormed)?;
    visit_at(moment.as_millisecond()).ok_or(Text::MomentIllFormed)
}

/// `2026-08-01 09:30`; also `2026/8/1 9:30:00`, which is what a Chinese spreadsheet makes of it.
fn civil(text: &str) -> Option<DateTime> {
    let text = wire::trim(text);
    let (date, time) = text.split_once(|c: char| c.is_whitespace() || c == 'T')?;
    let number = |part: &str, most: usize| {
        let digits = clean_digits(part);
        let fits = part == wire::trim(part)
            && (1..=most).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit());
        if fits { digits.parse::<i16>().ok() } else { None }
    };
    let small = |part: &str| number(part, 2).and_then(|n| i8::try_from(n).ok());
    let separator = if date.contains('/') { '/' } else { '-' };
    let mut date = date.split(separator);
    let year = date.next().filter(|year| clean_digits(year).len() == 4).and_then(|year| number(year, 4))?;
    let (month, day) = (small(date.next()?)?, small(date.next()?)?);
    let mut time = wire::trim(time).split([':', '：']);
    let (hour, minute) = (small(time.next()?)?, small(time.next()?)?);
    let second = time.next().map_or(Some(0), small)?;
    if date.next().is_some() || time.next().is_some() {
        return None;
    }
    DateTime::new(year, month, day, hour, minute, second, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Cell {
        Cell::text(text)
    }

    #[test]
    fn a_number_that_a_spreadsheet_has_rounded_is_named_as_such() {
        for rounded in ["1.9E+18", "2.02608E+13", "1,38e+10", "2E+15"] {
            assert_eq!(order_no_of(&text(rounded)), Err(Text::CellRounded), "{rounded}");
            assert_eq!(mobile_of(&text(rounded)).unwrap_err(), Text::CellRounded, "{rounded}");
        }
        assert_eq!(order_no_of(&Cell::Number(2.026_080_1e18)), Err(Text::CellRounded));
        assert_eq!(order_no_of(&text("2E15")).unwrap().as_str(), "2E15", "a number of somebody's");
        assert_eq!(order_no_of(&Cell::Number(202_608_010_001.0)).unwrap().as_str(), "202608010001");
        assert_eq!(mobile_of(&Cell::Number(13_800_000_001.0)).unwrap().expose(), "+8613800000001");
    }

    #[test]
    fn cells_are_cleaned_as_what_people_type() {
        assert_eq!(order_no_of(&text(" bk２０26 0801\u{200b}0001 ")).unwrap().as_str(), "BK202608010001");
        assert_eq!(order_no_of(&unmarked(&text("'0012"))).unwrap().as_str(), "0012");
        assert_eq!(name_of(&unmarked(&text(" ''t Hooft"))).unwrap(), "'t Hooft");
        assert_eq!(*unmarked(&text("'")), Cell::Empty);
        assert_eq!(mobile_of(&text("138 0000 ０００１\n")).unwrap().expose(), "+8613800000001");
        assert_eq!(mobile_of(&text("138-0000-0001")).unwrap_err(), Text::MobileInvalid);
        assert_eq!(party_of(&text("１ 2")), Ok(12));
        assert_eq!(party_of(&Cell::Number(12.0)), Ok(12));
        for wrong in [text("+3"), text("2.5"), text("0"), Cell::Number(2.5), Cell::Number(-3.0), text("100001")] {
            assert_eq!(party_of(&wrong), Err(Text::PartyIllFormed), "{wrong:?}");
        }
        assert_eq!(name_of(&text("李四\r\n(团长) ")).unwrap(), "李四 (团长)");
        assert_eq!(name_of(&text("=HYPERLINK(\"x\")")).unwrap(), "=HYPERLINK(\"x\")");
        assert_eq!(name_of(&text("张\u{7}")), Err(Text::NameIllFormed));
        assert_eq!(status_of(&text(" PAID")), Ok(OrderStatus::Paid));
        assert_eq!(status_of(&text("退款中")), Ok(OrderStatus::Refunding));
        assert_eq!(status_of(&text("done")), Err(Text::StatusUnknown));
    }

    #[test]
    fn times_are_the_venues_and_a_day_that_does_not_exist_is_refused() {
        let shanghai = TimeZone::get("Asia/Shanghai").unwrap();
        let want = 1_785_547_800_000;
        for right in ["2026-08-01 09:30", "2026/8/1 9:30", " 2026-08-01  09:30:00", "２０２６-08-01 09：30"] {
            assert_eq!(moment_of(&text(right), &shanghai), Ok(want), "{right}");
        }
        assert_eq!(moment_of(&Cell::Moment(DateTime::constant(2026, 8, 1, 9, 30, 0, 0)), &shanghai), Ok(want));
        for wrong in
            ["2026-13-01 09:30", "2026-02-30 09:30", "01/08/2026 09:30", "2026-08-01", "46235.4", "2026-08-01 9:30 PM"]
        {
            assert_eq!(moment_of(&text(wrong), &shanghai), Err(Text::MomentIllFormed), "{wrong}");
        }
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(moment_of(&text("2026-03-29 02:30"), &berlin), Err(Text::MomentSkipped));
        assert_eq!(moment_of(&text("2026-10-25 02:30"), &berlin), Ok(1_792_888_200_000));
    }

    #[test]
    fn columns_have_either_name_in_any_order() {
        let header = ["备注", "状态", "MOBILE", "人数", "\u{feff}订单号", "visitAt", "姓名"].map(text);
        let columns = Columns::of(1, &header).unwrap();
        assert!(!columns.has_task());
        let row = ["x", "已支付", "13800000001", "3", "BK1", "2026-08-01 09:30", "张三"].map(text);
        let order = columns.order(2, &row, &TimeZone::UTC).unwrap();
        assert_eq!((order.order_no.as_str(), order.party_size, order.task_no), ("BK1", 3, None));
        let twice = [header[4].clone(), text("orderNo")];
        let Err(Stopped::Faults(faults)) = Columns::of(1, &twice) else { panic!("taken") };
        assert_eq!(faults.len(), 6, "one column twice, five missing: {faults:?}");
    }
}
