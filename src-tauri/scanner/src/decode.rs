//! Brightness in, texts out: zxing-cpp first, rqrr on a locally thresholded copy as rescue.

mod binary;

use crate::{Luma, guard};
use binary::Binary;
use std::cell::OnceCell;
use std::time::{Duration, Instant};
use zxingcpp::{BarcodeFormat, BarcodeReader, Binarizer, ImageFormat, ImageView, TextMode};

/// First stage: zxing-cpp with its default options (inverted, mirrored, turned, any number of symbols), QR codes only.
pub fn main_stage(luma: &Luma) -> Vec<String> {
    read_with(luma, Binarizer::LocalAverage)
}

fn read_with(luma: &Luma, binarizer: Binarizer) -> Vec<String> {
    let reader =
        BarcodeReader::new().formats([BarcodeFormat::QRCodeModel2]).text_mode(TextMode::Plain).binarizer(binarizer);
    let Ok(view) = ImageView::from_slice(luma.pixels(), luma.width(), luma.height(), ImageFormat::Lum) else {
        return Vec::new();
    };
    let found = reader.from(view).unwrap_or_default();
    unique(found.iter().filter(|code| code.is_valid()).map(whole_text))
}

/// Second stage: rqrr on a local threshold, which finds codes under uneven light. Gives up after `budget`: on a sheet of
/// finder patterns rqrr would work for seconds.
pub fn rescue_stage(luma: &Luma, budget: Duration) -> Vec<String> {
    let deadline = Instant::now() + budget;
    let binary = local_threshold(luma, RADIUS, MARGIN);
    // It panics on some pictures (an index out of range); the picture is then one without a code.
    guard::catch("rqrr", || {
        let mut image = rqrr::PreparedImage::without_preparation(Binary::new(&binary, deadline));
        rqrr_texts(image.detect_grids())
    })
    .unwrap_or_default()
}

/// rqrr as it comes, without a budget: the yardstick of the benchmark.
pub fn rqrr_alone(luma: &Luma) -> Vec<String> {
    guard::catch("rqrr", || {
        let mut image = rqrr::PreparedImage::prepare_from_greyscale(luma.width(), luma.height(), |x, y| {
            luma.pixels()[y * luma.width() + x]
        });
        rqrr_texts(image.detect_grids())
    })
    .unwrap_or_default()
}

fn rqrr_texts<G: rqrr::BitGrid>(grids: Vec<rqrr::Grid<G>>) -> Vec<String> {
    unique(grids.iter().filter_map(|grid| grid.decode().ok()).map(|(_, text)| text))
}

/// Time for the rescue stage on a live frame.
pub const LIVE_BUDGET: Duration = Duration::from_millis(50);

/// Time for the rescue stage on a still picture.
const STILL_BUDGET: Duration = Duration::from_secs(1);

/// The same for each form of it that is tried afterwards.
const SECOND_LOOK_BUDGET: Duration = Duration::from_millis(300);

/// Half the side of the square that a pixel is compared with.
const RADIUS: usize = 12;

/// How much darker than its surroundings a black pixel is.
const MARGIN: i32 = 4;

/// Still pictures: there is time. Both stages always; where they find nothing, the picture is tried in other forms until
/// one of them is read.
pub fn still(luma: &Luma) -> Vec<String> {
    let texts = unique(main_stage(luma).into_iter().chain(rescue_stage(luma, STILL_BUDGET)));
    if texts.is_empty() { second_looks(luma) } else { texts }
}

/// Above this many pixels a picture is not enlarged: its modules are large enough, and it would take seconds.
const ENLARGE_UP_TO: usize = 3_000_000;

/// Every form is general: each undoes one kind of harm that light, lens, screen or distance does. The cheap ones first.
fn second_looks(luma: &Luma) -> Vec<String> {
    let enlarged = OnceCell::new();
    let enlarged = || {
        let small = luma.width() * luma.height() <= ENLARGE_UP_TO;
        enlarged.get_or_init(|| small.then(|| luma.doubled())).as_ref()
    };
    let main = |form: &Luma| main_stage(form);
    let rescue = |form: &Luma| rescue_stage(form, SECOND_LOOK_BUDGET);
    let above = |threshold: u8| luma.map(|p| if p < threshold { 0 } else { 255 });
    let looks: [&dyn Fn() -> Vec<String>; 16] = [
        // Two brightnesses and a wide margin of neither.
        &|| read_with(luma, Binarizer::GlobalHistogram),
        &|| main(&above(70)),
        &|| main(&above(100)),
        &|| main(&above(150)),
        &|| main(&above(200)),
        // Glare, shadow, a dim screen.
        &|| main(&local_threshold(luma, RADIUS, MARGIN)),
        // So large or so noisy that less is more.
        &|| luma.shrunk(2).map(|form| main(&form)).unwrap_or_default(),
        &|| luma.shrunk(3).map(|form| main(&form)).unwrap_or_default(),
        // The noise of little light; the pattern of a screen's pixels.
        &|| main(&local_threshold(&luma.blurred(1), 2 * RADIUS, MARGIN)),
        &|| main(&luma.blurred(2)),
        // Out of focus, or in motion.
        &|| main(&luma.sharpened(5, 4)),
        &|| rescue(&luma.sharpened(2, 2)),
        // zxing-cpp reads white on black by itself, rqrr does not.
        &|| rescue(&luma.map(|p| 255 - p)),
        // Far away: modules of one and a half pixels.
        &|| enlarged().map(main).unwrap_or_default(),
        &|| enlarged().map(|form| main(&form.sharpened(5, 4))).unwrap_or_default(),
        &|| enlarged().map(rescue).unwrap_or_default(),
    ];
    looks.iter().map(|look| look()).find(|texts| !texts.is_empty()).unwrap_or_default()
}

/// Black where a pixel is darker than its surroundings by a margin.
fn local_threshold(luma: &Luma, radius: usize, margin: i32) -> Luma {
    luma.against_surroundings(radius, |pixel, mean| if pixel + margin < mean { 0 } else { 255 })
}

/// The text of a symbol. The library's own ends at a NUL, and half a text must not pass for a whole one.
fn whole_text(symbol: &zxingcpp::Barcode) -> String {
    let bytes = symbol.bytes();
    if bytes.contains(&0) { String::from_utf8_lossy(&bytes).into_owned() } else { symbol.text() }
}

/// Each text once, in the order found.
fn unique(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for text in texts {
        if !text.is_empty() && !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}
