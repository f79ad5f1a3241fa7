//! A black-and-white image that ends the work on it when its time is up: the only hold there is on rqrr from outside.

use crate::Luma;
use image::{GenericImage, GenericImageView, Pixel};
use std::cell::Cell;
use std::time::Instant;

/// Reading the clock at each pixel would cost more than the pixel.
const PIXELS_PER_LOOK: u32 = 4096;

/// The marks rqrr works with.
const WHITE: u8 = 0;
const BLACK: u8 = 1;

/// What unwinds out of rqrr; caught by the caller, shown to nobody.
pub(super) struct OutOfTime;

/// Thresholded pixels as rqrr wants them, with a deadline.
pub(super) struct Binary {
    pixels: Vec<image::Luma<u8>>,
    width: u32,
    height: u32,
    deadline: Instant,
    until_look: Cell<u32>,
}

impl Binary {
    pub(super) fn new(thresholded: &Luma, deadline: Instant) -> Self {
        let mark = |&pixel| image::Luma([if pixel < 128 { BLACK } else { WHITE }]);
        Self {
            pixels: thresholded.pixels().iter().map(mark).collect(),
            width: thresholded.width() as u32,
            height: thresholded.height() as u32,
            deadline,
            until_look: Cell::new(PIXELS_PER_LOOK),
        }
    }

    fn look_at_the_clock(&self) {
        self.until_look.set(PIXELS_PER_LOOK);
        if Instant::now() >= self.deadline {
            // Not `panic!`: this is no fault, and no hook shall report one.
            std::panic::resume_unwind(Box::new(OutOfTime));
        }
    }

    fn at(&self, x: u32, y: u32) -> usize {
        y as usize * self.width as usize + x as usize
    }
}

/// rqrr copies the image for each group of finder patterns that it tries: the loop that takes seconds.
impl Clone for Binary {
    fn clone(&self) -> Self {
        self.look_at_the_clock();
        Self { pixels: self.pixels.clone(), until_look: Cell::new(PIXELS_PER_LOOK), ..*self }
    }
}

impl GenericImageView for Binary {
    type Pixel = image::Luma<u8>;

    fn dimensions(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    fn get_pixel(&self, x: u32, y: u32) -> Self::Pixel {
        match self.until_look.get() {
            0 => self.look_at_the_clock(),
            left => self.until_look.set(left - 1),
        }
        self.pixels[self.at(x, y)]
    }
}

impl GenericImage for Binary {
    fn get_pixel_mut(&mut self, x: u32, y: u32) -> &mut Self::Pixel {
        let at = self.at(x, y);
        &mut self.pixels[at]
    }

    fn put_pixel(&mut self, x: u32, y: u32, pixel: Self::Pixel) {
        let at = self.at(x, y);
        self.pixels[at] = pixel;
    }

    fn blend_pixel(&mut self, x: u32, y: u32, pixel: Self::Pixel) {
        let at = self.at(x, y);
        self.pixels[at].blend(&pixel);
    }
}
