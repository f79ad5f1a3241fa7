//! Brightness, one byte a pixel: all that decoding needs of a frame.

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

    /// Twice as wide and high, smoothly.
    pub(crate) fn doubled(&self) -> Self {
        let (width, height) = (self.width * 2, self.height * 2);
        let mut pixels = Vec::with_capacity(width * height);
        // A new pixel lies a quarter of an old one away from its nearest: three parts of that, one of the next.
        let near_and_next = |i: usize, side: usize| {
            let near = i / 2;
            (near, if i.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(side - 1) })
        };
        for y in 0..height {
            let (near, next) = near_and_next(y, self.height);
            let (near, next) = (&self.pixels[near * self.width..], &self.pixels[next * self.width..]);
            let column = |x: usize| 3 * u32::from(near[x]) + u32::from(next[x]);
            pixels.extend((0..width).map(|x| {
                let (near, next) = near_and_next(x, self.width);
                ((3 * column(near) + column(next) + 8) / 16) as u8
            }));
        }
        Self { pixels, width, height }
    }

    /// One pixel for each square of `by * by`, their mean. `None` when nothing would be left.
    pub(crate) fn shrunk(&self, by: usize) -> Option<Self> {
        let (width, height) = (self.width / by, self.height / by);
        let sums = Sums::of(self);
        let mean = |x: usize, y: usize| sums.within(x * by..(x + 1) * by, y * by..(y + 1) * by) / (by * by) as u32;
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| mean(x, y) as u8);
        Self::new(pixels.collect(), width, height)
    }

    /// For each pixel what `of` makes of it and of the mean of its surroundings, `radius` pixels to each side.
    pub(crate) fn against_surroundings(&self, radius: usize, of: impl Fn(i32, i32) -> u8) -> Self {
        let sums = Sums::of(self);
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for y in 0..self.height {
            let rows = y.saturating_sub(radius)..(y + radius + 1).min(self.height);
            let row = &self.pixels[y * self.width..][..self.width];
            pixels.extend(row.iter().enumerate().map(|(x, &pixel)| {
                let columns = x.saturating_sub(radius)..(x + radius + 1).min(self.width);
                let count = (rows.len() * columns.len()) as u32;
                // Rounded up: a pixel is darker than the mean by a margin only if it is so without rounding.
                of(i32::from(pixel), sums.within(columns, rows.clone()).div_ceil(count) as i32)
            }));
        }
        Self { pixels, ..*self }
    }

    /// Softened over `radius` pixels to each side.
    pub(crate) fn blurred(&self, radius: usize) -> Self {
        self.against_surroundings(radius, |_, mean| mean as u8)
    }

    /// Differences over `radius` pixels to each side made stronger.
    pub(crate) fn sharpened(&self, radius: usize, strength: i32) -> Self {
        self.against_surroundings(radius, |pixel, mean| (pixel + strength * (pixel - mean)).clamp(0, 255) as u8)
    }
}

/// Sums over all pixels above and to the left of each, so that any rectangle's sum costs four look-ups.
struct Sums {
    sums: Vec<u32>,
    stride: usize,
}

impl Sums {
    fn of(luma: &Luma) -> Self {
        let stride = luma.width + 1;
        let mut sums = vec![0u32; stride * (luma.height + 1)];
        for (y, row) in luma.pixels.chunks_exact(luma.width).enumerate() {
            let (above, here) = sums[y * stride..].split_at_mut(stride);
            let mut sum = 0u32;
            for (x, &pixel) in row.iter().enumerate() {
                sum = sum.wrapping_add(u32::from(pixel));
                here[x + 1] = above[x + 1].wrapping_add(sum);
            }
        }
        Self { sums, stride }
    }

    /// The sum over a rectangle: exact as long as it fits itself, since whole turns of the counter cancel out.
    fn within(&self, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> u32 {
        let (above, below) = (rows.start * self.stride, rows.end * self.stride);
        self.sums[below + columns.end]
            .wrapping_sub(self.sums[below + columns.start])
            .wrapping_sub(self.sums[above + columns.end])
            .wrapping_add(self.sums[above + columns.start])
    }
}

impl std::fmt::Debug for Luma {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Luma({}x{})", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Luma {
        Luma::new((0..40 * 30).map(|i| (i % 40 * 6) as u8).collect(), 40, 30).unwrap()
    }

    #[test]
    fn too_few_bytes_are_no_picture_and_trailing_ones_are_cut_off() {
        assert!(Luma::new(vec![0; 5], 2, 3).is_none());
        assert!(Luma::new(vec![], 0, 3).is_none());
        assert!(Luma::new(vec![0; 5], usize::MAX, 2).is_none());
        assert_eq!(Luma::new(vec![7; 9], 2, 3).unwrap().pixels(), [7; 6]);
    }

    #[test]
    fn larger_and_smaller_again_is_nearly_the_same() {
        let ramp = ramp();
        let doubled = ramp.doubled();
        assert_eq!((doubled.width(), doubled.height()), (80, 60));
        let back = doubled.shrunk(2).unwrap();
        assert!(back.pixels().iter().zip(ramp.pixels()).all(|(a, b)| a.abs_diff(*b) <= 2));
        assert!(ramp.shrunk(31).is_none());
    }

    #[test]
    fn a_flat_picture_stays_flat_whatever_its_brightness_and_size() {
        // White and large enough for the sums to run over.
        let white = Luma::new(vec![255; 5000 * 4000], 5000, 4000).unwrap();
        assert!(white.blurred(3) == white && white.sharpened(3, 4) == white);
    }

    #[test]
    fn sharpening_widens_an_edge_and_blurring_narrows_it() {
        let edge = Luma::new((0..20).map(|x| if x < 10 { 100 } else { 150 }).collect(), 20, 1).unwrap();
        assert_eq!((edge.sharpened(2, 2).pixels()[9], edge.sharpened(2, 2).pixels()[10]), (60, 190));
        assert_eq!((edge.blurred(1).pixels()[9], edge.blurred(1).pixels()[10]), (117, 134));
    }
}
