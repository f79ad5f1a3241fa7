//! Where frames come from, and what a frame is.

pub mod camera;
mod device;
pub mod pictures;

pub use device::{CameraInfo, cameras};

use crate::jpeg::{self, Broken};
use crate::{Luma, SourceState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Previews are made no wider than this; the page shows them smaller still.
const PREVIEW_WIDTH: usize = 640;
const PREVIEW_QUALITY: u8 = 75;

/// Gives frames one after the other, the latest when it is asked too seldom. Camera and pictures are the two kinds.
pub trait FrameSource: Send {
    /// What to call the source in front of people.
    fn name(&self) -> String;

    /// The next frame or news of the source. Returns when `limit` has passed at the latest, whatever the device does.
    fn next(&mut self, limit: Duration) -> Next;
}

/// What a source has to say.
#[derive(Debug)]
pub enum Next {
    /// A frame. That frames come is the sign that all is well.
    Frame(Frame),
    /// What is wrong (or that it is being opened).
    State(SourceState),
    /// Nothing new within the limit.
    Nothing,
    /// No frame will come any more.
    End,
}

/// One picture, as it came.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The picture.
    pub pixels: Pixels,
    /// When it was taken, as far as we can know.
    pub taken_at: Instant,
}

/// Pixels in the forms that sources give them in; nothing is converted before it is needed.
#[derive(Clone)]
pub enum Pixels {
    /// A JPEG, perhaps with trailing bytes, perhaps damaged.
    Jpeg(Arc<[u8]>),
    /// Packed 4:2:2, two bytes a pixel, Y first.
    Yuyv {
        /// The rows without gaps.
        data: Vec<u8>,
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// Three bytes a pixel.
    Rgb {
        /// The rows without gaps.
        data: Vec<u8>,
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// Brightness alone, or with colour planes behind it that nobody needs (NV12).
    Gray {
        /// The rows without gaps.
        data: Vec<u8>,
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
    },
}

impl std::fmt::Debug for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Jpeg(bytes) => write!(f, "Jpeg({} bytes)", bytes.len()),
            Self::Yuyv { width, height, .. } => write!(f, "Yuyv({width}x{height})"),
            Self::Rgb { width, height, .. } => write!(f, "Rgb({width}x{height})"),
            Self::Gray { width, height, .. } => write!(f, "Gray({width}x{height})"),
        }
    }
}

impl Pixels {
    /// The brightness, by the shortest way.
    ///
    /// # Errors
    /// [`Broken`] when the bytes hold no picture, or fewer rows than they say.
    pub fn luma(&self) -> Result<Luma, Broken> {
        match self {
            Self::Jpeg(bytes) => jpeg::luma(bytes),
            Self::Yuyv { data, width, height } => {
                let y = data.iter().step_by(2).copied().collect();
                Luma::new(y, *width, *height).ok_or(Broken)
            }
            Self::Rgb { data, width, height } => {
                let y = data.chunks_exact(3).map(|p| luma_of_rgb([p[0], p[1], p[2]])).collect();
                Luma::new(y, *width, *height).ok_or(Broken)
            }
            Self::Gray { data, width, height } => Luma::new(data.clone(), *width, *height).ok_or(Broken),
        }
    }

    /// A JPEG to show: a camera's own as it is, everything else made small first. `None` when there is nothing to show.
    pub fn preview(&self) -> Option<Arc<[u8]>> {
        use jpeg_encoder::ColorType;
        match self {
            Self::Jpeg(bytes) => Some(jpeg::complete(bytes)?.into()),
            Self::Yuyv { data, width, height } => {
                // Two neighbours share their colour: a sampled pixel takes its own Y and the U and V of its pair.
                small(*width, *height, data.len() / 2, ColorType::Ycbcr, |at, out| {
                    let pair = at / 2 * 4;
                    let (u, v) = (data.get(pair + 1), data.get(pair + 3));
                    out.extend([data[at * 2], u.copied().unwrap_or(128), v.copied().unwrap_or(128)]);
                })
            }
            Self::Rgb { data, width, height } => small(*width, *height, data.len() / 3, ColorType::Rgb, |at, out| {
                out.extend_from_slice(&data[at * 3..at * 3 + 3]);
            }),
            Self::Gray { data, width, height } => {
                small(*width, *height, data.len(), ColorType::Luma, |at, out| out.push(data[at]))
            }
        }
    }
}

/// ITU-R BT.601 with integers, as cameras and JPEG make their Y.
fn luma_of_rgb([r, g, b]: [u8; 3]) -> u8 {
    ((77 * u32::from(r) + 150 * u32::from(g) + 29 * u32::from(b) + 128) >> 8) as u8
}

/// Every n-th pixel, encoded. Good enough to aim by, and cheap.
fn small(
    width: usize,
    height: usize,
    pixels: usize,
    color: jpeg_encoder::ColorType,
    mut pixel: impl FnMut(usize, &mut Vec<u8>),
) -> Option<Arc<[u8]>> {
    if width == 0 || height == 0 || width.checked_mul(height)? > pixels {
        return None;
    }
    let step = width.div_ceil(PREVIEW_WIDTH);
    let (small_width, small_height) = (width.div_ceil(step), height.div_ceil(step));
    let mut raw = Vec::with_capacity(small_width * small_height * 3);
    for y in (0..height).step_by(step) {
        for x in (0..width).step_by(step) {
            pixel(y * width + x, &mut raw);
        }
    }
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, PREVIEW_QUALITY);
    encoder.encode(&raw, u16::try_from(small_width).ok()?, u16::try_from(small_height).ok()?, color).ok()?;
    Some(jpeg.into())
}

/// A camera of this machine.
pub fn real_camera(index: u32, name: Option<String>) -> impl FrameSource {
    let shown = name.clone().unwrap_or_else(|| format!("camera {index}"));
    camera::Camera::new(shown, move || device::NokhwaDevice::new(index, name.clone()), camera::Limits::default())
}
