//! Pictures in place of a camera: a file or a folder, in name order, at a chosen rate; also reads a picture for the
//! command line.

use super::{Frame, FrameSource, Next, Pixels};
use crate::{Luma, SourceState};
use image::{DynamicImage, ImageReader, Limits};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pictures with more pixels are refused: they would cost hundreds of megabytes.
pub const MAX_PIXELS: u64 = 50_000_000;

/// Larger pictures are made smaller before they stand in for a camera's frame.
const MAX_LIVE_PIXELS: f32 = 2_000_000.0;

/// How often a picture that cannot be read is tried again, since it may still be on its way to the disk.
const TRIES: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// How often an empty folder is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The slowest and fastest rate that makes sense.
const RATES: std::ops::RangeInclusive<f32> = 0.01..=60.0;

const EXTENSIONS: [&str; 4] = ["jpg", "jpeg", "png", "webp"];

/// Why a picture cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not a JPEG, PNG or WebP, or it is damaged.
    #[error("not a readable JPEG, PNG or WebP picture: {0}")]
    Format(#[from] image::ImageError),
    /// It has more than [`MAX_PIXELS`].
    #[error("{width}x{height} pixels are too many (at most {} million)", MAX_PIXELS / 1_000_000)]
    TooLarge {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The end is missing, as it is while the file is being written.
    #[error("the picture's end is missing")]
    Unfinished,
}

/// The picture files at `path`: itself, or what lies in the folder, by name.
///
/// # Errors
/// When there is nothing at `path`, or it may not be read.
pub fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        let is_picture =
            file.extension().is_some_and(|ext| EXTENSIONS.iter().any(|known| ext.eq_ignore_ascii_case(known)));
        if is_picture && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// A picture's brightness in full size.
///
/// # Errors
/// Whatever keeps the file from being a picture of at most [`MAX_PIXELS`].
pub fn read_luma(path: &Path) -> Result<Luma, PictureError> {
    let picture = decode(&std::fs::read(path)?)?;
    // What the eye sees of a transparent picture is what stands on white paper.
    let gray = if picture.color().has_alpha() { on_white(&picture).to_luma8() } else { picture.to_luma8() };
    let (width, height) = gray.dimensions();
    Luma::new(gray.into_raw(), width as usize, height as usize).ok_or(PictureError::Unfinished)
}

fn decode(bytes: &[u8]) -> Result<DynamicImage, PictureError> {
    let reader = || ImageReader::new(io::Cursor::new(bytes)).with_guessed_format();
    let (width, height) = reader()?.into_dimensions()?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(PictureError::TooLarge { width, height });
    }
    let mut reader = reader()?;
    let mut limits = Limits::default();
    // 16 bits in four channels, and a copy of it.
    limits.max_alloc = Some(MAX_PIXELS * 8 * 2);
    reader.limits(limits);
    Ok(reader.decode()?)
}

fn on_white(picture: &DynamicImage) -> DynamicImage {
    let mut rgba = picture.to_rgba8();
    for pixel in rgba.pixels_mut() {
        let [r, g, b, a] = pixel.0.map(u32::from);
        pixel.0 = [r, g, b, 255].map(|c| ((c * a + 255 * (255 - a) + 127) / 255) as u8);
    }
    DynamicImage::ImageRgba8(rgba)
}

/// A JPEG that is cut short decodes all the same, its rest grey: only its end mark tells.
fn is_cut_short(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8]) && crate::jpeg::complete(bytes).is_none()
}

/// Pictures as a source of frames.
pub struct Pictures {
    path: PathBuf,
    interval: Duration,
    repeat: bool,
    due: Instant,
    /// What is left of this round, with the tries each file had.
    queue: VecDeque<(PathBuf, u32)>,
    started: bool,
    good_in_round: bool,
}

impl Pictures {
    /// The pictures at `path`, `fps` of them a second, once or for ever.
    pub fn new(path: PathBuf, fps: f32, repeat: bool) -> Self {
        let fps = if fps.is_finite() { fps.clamp(*RATES.start(), *RATES.end()) } else { 1.0 };
        Self {
            path,
            interval: Duration::from_secs_f32(1.0 / fps),
            repeat,
            due: Instant::now(),
            queue: VecDeque::new(),
            started: false,
            good_in_round: true,
        }
    }

    fn read(path: &Path, last_try: bool) -> Result<Pixels, PictureError> {
        let bytes = std::fs::read(path)?;
        if !last_try && is_cut_short(&bytes) {
            return Err(PictureError::Unfinished);
        }
        let mut picture = decode(&bytes)?;
        let pixels = picture.width() as f32 * picture.height() as f32;
        if pixels > MAX_LIVE_PIXELS {
            let factor = (MAX_LIVE_PIXELS / pixels).sqrt();
            let size = |side: u32| ((side as f32 * factor) as u32).max(1);
            picture = picture.thumbnail_exact(size(picture.width()), size(picture.height()));
        }
        if picture.color().has_alpha() {
            picture = on_white(&picture);
        }
        let (width, height) = (picture.width() as usize, picture.height() as usize);
        Ok(if picture.color().has_color() {
            Pixels::Rgb { data: picture.into_rgb8().into_raw(), width, height }
        } else {
            Pixels::Gray { data: picture.into_luma8().into_raw(), width, height }
        })
    }

    /// The picture that is due, or what there is to say instead.
    fn take(&mut self, now: Instant) -> Next {
        if self.queue.is_empty() {
            if self.started && !self.repeat {
                return Next::End;
            }
            let round_was_bad = self.started && !self.good_in_round;
            let files = list(&self.path).unwrap_or_default();
            if files.is_empty() {
                (self.started, self.good_in_round) = (false, true);
                self.due = now + LOOK_AGAIN;
                return Next::State(SourceState::NoPictures);
            }
            self.queue = files.into_iter().map(|file| (file, 0)).collect();
            (self.started, self.good_in_round) = (true, false);
            if round_was_bad {
                return Next::State(SourceState::BrokenFrames);
            }
        }
        let Some((file, tries)) = self.queue.pop_front() else { return Next::Nothing };
        let last_try = tries + 1 >= TRIES;
        match Self::read(&file, last_try) {
            Ok(pixels) => {
                self.good_in_round = true;
                self.due = (self.due + self.interval).max(now);
                Next::Frame(Frame { pixels, taken_at: now })
            }
            // A file that was there when the folder was read was taken away: that is no fault.
            Err(PictureError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                if !self.good_in_round && self.queue.is_empty() {
                    (self.started, self.good_in_round) = (false, true);
                    self.due = now + LOOK_AGAIN;
                    return Next::State(SourceState::NoPictures);
                }
                Next::Nothing
            }
            Err(error) if last_try || matches!(error, PictureError::TooLarge { .. }) => {
                tracing::warn!(file = %file.display(), %error, "the picture is left out");
                self.due = now + RETRY_AFTER;
                if self.good_in_round || !self.queue.is_empty() {
                    Next::Nothing
                } else {
                    Next::State(SourceState::BrokenFrames)
                }
            }
            Err(error) => {
                tracing::debug!(file = %file.display(), %error, "the picture cannot be read yet");
                // After the others; when there are none, after a moment.
                if self.queue.is_empty() {
                    self.due = now + RETRY_AFTER;
                }
                self.queue.push_back((file, tries + 1));
                Next::Nothing
            }
        }
    }
}

impl FrameSource for Pictures {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn next(&mut self, limit: Duration) -> Next {
        let now = Instant::now();
        let deadline = now + limit;
        if self.due > now {
            std::thread::sleep(self.due.min(deadline) - now);
        }
        let now = Instant::now();
        if self.due > now { Next::Nothing } else { self.take(now) }
    }
}
