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
    unique(found.iter().filter(|code| code.is_valid()).map(zxingcpp::Barcode::text))
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
pub const LIVE_BUDGET: Duration = Duration::from_millis(40);

/// Time for the rescue stage on a still picture, for each try.
const STILL_BUDGET: Duration = Duration::from_secs(1);

/// Half the side of the square that a pixel is compared with.
const RADIUS: usize = 12;

/// How much darker than its surroundings a black pixel is.
const MARGIN: i64 = 4;

/// Still pictures: there is time. Both stages always; where they find nothing, the picture is tried in other forms until
/// one of them is read.
pub fn still(luma: &Luma) -> Vec<String> {
    let texts = unique(main_stage(luma).into_iter().chain(rescue_stage(luma, STILL_BUDGET)));
    if texts.is_empty() { second_looks(luma) } else { texts }
}

/// Above this many pixels a picture is not enlarged: its modules are large enough, and it would take seconds.
const ENLARGE_UP_TO: usize = 3_000_000;

/// Every form is general: each undoes one kind of harm that light, lens, screen or distance does.
fn second_looks(luma: &Luma) -> Vec<String> {
    let area = luma.width() * luma.height();
    let enlarged = OnceCell::new();
    let enlarged = || {
        let make = || if area <= ENLARGE_UP_TO { luma.scaled(2.0) } else { None };
        enlarged.get_or_init(make).as_ref()
    };
    let main = |form: Option<&Luma>| form.map(main_stage).unwrap_or_default();
    let rescue = |form: Option<&Luma>| form.map(|form| rescue_stage(form, STILL_BUDGET)).unwrap_or_default();
    let above = |threshold: u8| luma.map(|p| if p < threshold { 0 } else { 255 });
    // In the order of how often they help, measured.
    let looks: [&dyn Fn() -> Vec<String>; 16] = [
        // Far away: modules of one and a half pixels.
        &|| main(enlarged()),
        // Glare, shadow, a dim screen.
        &|| main(Some(&local_threshold(luma, RADIUS, MARGIN))),
        &|| rescue(enlarged()),
        // Out of focus, or in motion.
        &|| main(luma.sharpened(3.0, 4.0).as_ref()),
        &|| main(enlarged().and_then(|form| form.sharpened(3.0, 4.0)).as_ref()),
        &|| rescue(luma.sharpened(1.5, 2.0).as_ref()),
        // The noise of little light; the pattern of a screen's pixels.
        &|| main(luma.blurred(1.0).map(|form| local_threshold(&form, 2 * RADIUS, MARGIN)).as_ref()),
        &|| main(luma.blurred(1.5).as_ref()),
        &|| main(luma.scaled(0.5).as_ref()),
        &|| main(luma.scaled(1.0 / 3.0).as_ref()),
        // Two brightnesses and a wide margin of neither.
        &|| read_with(luma, Binarizer::GlobalHistogram),
        &|| main(Some(&above(70))),
        &|| main(Some(&above(100))),
        &|| main(Some(&above(150))),
        &|| main(Some(&above(200))),
        // zxing-cpp reads white on black by itself, rqrr does not.
        &|| rescue(Some(&luma.map(|p| 255 - p))),
    ];
    looks.iter().map(|look| look()).find(|texts| !texts.is_empty()).unwrap_or_default()
}

/// Black where a pixel is darker than its surroundings by a margin.
fn local_threshold(luma: &Luma, radius: usize, margin: i64) -> Luma {
    let (width, height) = (luma.width(), luma.height());
    // Sums over all pixels above and to the left; u32 holds 16 million white pixels, wrapping differences more.
    let stride = width + 1;
    let mut sums = vec![0u32; stride * (height + 1)];
    for (y, row) in luma.pixels().chunks_exact(width).enumerate() {
        let mut sum = 0u32;
        for (x, &pixel) in row.iter().enumerate() {
            sum = sum.wrapping_add(u32::from(pixel));
            sums[(y + 1) * stride + x + 1] = sums[y * stride + x + 1].wrapping_add(sum);
        }
    }
    let mut out = Vec::with_capacity(luma.pixels().len());
    for (y, row) in luma.pixels().chunks_exact(width).enumerate() {
        let (top, bottom) = (y.saturating_sub(radius), (y + radius + 1).min(height));
        let (above, below) = (&sums[top * stride..][..stride], &sums[bottom * stride..][..stride]);
        for (x, &pixel) in row.iter().enumerate() {
            let (left, right) = (x.saturating_sub(radius), (x + radius + 1).min(width));
            let count = ((bottom - top) * (right - left)) as i64;
            let sum = below[right].wrapping_sub(below[left]).wrapping_sub(above[right]).wrapping_add(above[left]);
            out.push(if (i64::from(pixel) + margin) * count < i64::from(sum) { 0 } else { 255 });
        }
    }
    luma.with_pixels(out)
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
