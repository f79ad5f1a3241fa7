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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brightness_of_yuyv_is_its_y_and_nothing_else() {
        let data = vec![10, 99, 20, 98, 30, 97, 40, 96, 1, 2];
        let luma = Pixels::Yuyv { data: data.clone(), width: 2, height: 2 }.luma().unwrap();
        assert_eq!(luma.pixels(), [10, 20, 30, 40], "trailing bytes are cut off");
        assert_eq!(Pixels::Yuyv { data, width: 4, height: 2 }.luma(), Err(Broken), "rows are missing");
    }

    #[test]
    fn the_brightness_of_nv12_and_of_colours() {
        let nv12 = Pixels::Gray { data: vec![1, 2, 3, 4, 128, 128], width: 2, height: 2 };
        assert_eq!(nv12.luma().unwrap().pixels(), [1, 2, 3, 4]);
        let rgb = Pixels::Rgb { data: vec![255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0], width: 2, height: 2 };
        assert_eq!(rgb.luma().unwrap().pixels(), [255, 0, 77, 149]);
        assert_eq!(Pixels::Gray { data: vec![], width: 0, height: 0 }.luma(), Err(Broken));
        assert_eq!(Pixels::Gray { data: vec![], width: usize::MAX, height: 2 }.luma(), Err(Broken));
    }

    #[test]
    fn a_yuyv_preview_is_small_and_has_the_right_colours() {
        // Left red, right blue, as BT.601 has them.
        let (width, height) = (1280, 720);
        let row: Vec<u8> =
            (0..width / 2).flat_map(|pair| if pair < 320 { [76, 85, 76, 255] } else { [29, 255, 29, 107] }).collect();
        let pixels = Pixels::Yuyv { data: row.repeat(height), width, height };
        let preview = image::load_from_memory(&pixels.preview().unwrap()).unwrap().to_rgb8();
        assert_eq!(preview.dimensions(), (640, 360));
        let near = |x: u32, wanted: [u8; 3]| {
            let got = preview.get_pixel(x, 100).0;
            assert!(got.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) < 30), "{got:?} is not {wanted:?}");
        };
        near(100, [255, 0, 0]);
        near(500, [0, 0, 255]);
    }

    #[test]
    fn a_cameras_own_jpeg_is_shown_as_it_is() {
        let mut jpeg = Vec::new();
        jpeg_encoder::Encoder::new(&mut jpeg, 90)
            .encode(&[90; 64 * 48], 64, 48, jpeg_encoder::ColorType::Luma)
            .unwrap();
        let buffer: Vec<u8> = jpeg.iter().copied().chain([0; 100]).collect();
        assert_eq!(Pixels::Jpeg(buffer.into()).preview().as_deref(), Some(jpeg.as_slice()));
    }

    #[test]
    fn what_is_no_picture_has_no_preview() {
        for pixels in [
            Pixels::Jpeg(Arc::from([0u8; 100])),
            Pixels::Yuyv { data: vec![0; 99], width: 640, height: 480 },
            Pixels::Rgb { data: vec![], width: 0, height: 0 },
        ] {
            assert!(pixels.preview().is_none(), "{pixels:?}");
        }
    }
}
