//! Brightness, one byte a pixel: all that decoding needs of a frame.

use image::{GrayImage, imageops};

/// A brightness image, row by row without gaps.
#[derive(Clone, PartialEq, Eq)]
pub struct Luma {
    pixels: Vec<u8>,
    width: usize,
    height: usize,
}

impl Luma {
    /// An image of `width * height` bytes; trailing bytes are cut off. `None` when there are too few, or no pixel at all.
    pub fn new(mut pixels: Vec<u8>, width: usize, height: usize) -> Option<Self> {
        let len = width.checked_mul(height).filter(|&len| len > 0 && len <= pixels.len())?;
        pixels.truncate(len);
        Some(Self { pixels, width, height })
    }

    /// The rows, one after the other.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The same picture with every pixel changed on its own.
    pub(crate) fn map(&self, change: impl Fn(u8) -> u8) -> Self {
        Self { pixels: self.pixels.iter().map(|&p| change(p)).collect(), ..*self }
    }

    /// The same picture with other pixels; both have the same size by construction.
    pub(crate) fn with_pixels(&self, pixels: Vec<u8>) -> Self {
        debug_assert_eq!(pixels.len(), self.pixels.len());
        Self { pixels, width: self.width, height: self.height }
    }

    /// Made larger or smaller, smoothly. `None` when nothing would be left.
    pub(crate) fn scaled(&self, factor: f32) -> Option<Self> {
        let size = |side: usize| (side as f32 * factor).round() as u32;
        let (width, height) = (size(self.width), size(self.height));
        if width == 0 || height == 0 {
            return None;
        }
        let scaled = imageops::resize(&self.as_image()?, width, height, imageops::FilterType::Triangle);
        Self::new(scaled.into_raw(), width as usize, height as usize)
    }

    /// Softened by about `radius` pixels.
    pub(crate) fn blurred(&self, radius: f32) -> Option<Self> {
        Some(self.with_pixels(imageops::fast_blur(&self.as_image()?, radius).into_raw()))
    }

    /// Differences over about `radius` pixels made `strength` times stronger.
    pub(crate) fn sharpened(&self, radius: f32, strength: f32) -> Option<Self> {
        let soft = self.blurred(radius)?;
        let sharpen = |(&p, &soft): (&u8, &u8)| {
            let (p, soft) = (f32::from(p), f32::from(soft));
            (p + strength * (p - soft)).clamp(0.0, 255.0) as u8
        };
        Some(self.with_pixels(self.pixels.iter().zip(&soft.pixels).map(sharpen).collect()))
    }

    fn as_image(&self) -> Option<GrayImage> {
        GrayImage::from_raw(self.width as u32, self.height as u32, self.pixels.clone())
    }
}

impl std::fmt::Debug for Luma {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Luma({}x{})", self.width, self.height)
    }
}
