//! Reads QR codes from cameras and pictures: frame, brightness, decoding, payload, no doubles.
//!
//! It knows no screen and no network. [`Scanner`] is the whole of it on threads of its own; the layers below are public
//! for the command line and for tests: [`frames`] gives pictures, [`decode`] finds texts in them, [`Code`] says what a
//! text means, [`Dedupe`] drops what is in sight already.
#![forbid(unsafe_code)]

pub mod decode;
mod dedupe;
pub mod frames;
mod guard;
pub mod jpeg;
mod luma;
mod payload;
mod pipeline;
mod preview;

pub use dedupe::{Dedupe, OUT_OF_SIGHT};
pub use frames::{CameraInfo, cameras};
pub use luma::Luma;
pub use payload::{Code, Reading, Sighting};
pub use pipeline::RESCUE_EVERY;
pub use preview::Preview;

use frames::FrameSource;
use pipeline::{Output, Pipeline};
use std::path::PathBuf;

/// Where to scan from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A camera. With a name it is found again wherever it is plugged in; without one the number decides.
    Camera {
        /// Its number in [`cameras`].
        index: u32,
        /// Its name in [`cameras`].
        name: Option<String>,
    },
    /// Pictures in place of a camera.
    Pictures {
        /// A picture, or a folder of them.
        path: PathBuf,
        /// Pictures a second.
        fps: f32,
        /// From the start again, for ever; the folder is read anew each time.
        repeat: bool,
    },
}

impl Source {
    fn open(self) -> Box<dyn FrameSource> {
        match self {
            Self::Camera { index, name } => Box::new(frames::real_camera(index, name)),
            Self::Pictures { path, fps, repeat } => Box::new(frames::pictures::Pictures::new(path, fps, repeat)),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Camera { name: Some(name), .. } => name.clone(),
            Self::Camera { index, name: None } => format!("camera {index}"),
            Self::Pictures { path, .. } => path.display().to_string(),
        }
    }
}

/// How a source is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceState {
    /// It is being opened.
    Opening,
    /// Frames come.
    Live,
    /// There is no such camera.
    NoCamera,
    /// It was there and is gone; it is opened again when it comes back.
    Lost,
    /// Another program uses it.
    Busy,
    /// The user may not use it.
    NoPermission,
    /// It does not answer, or has stopped sending.
    Stalled,
    /// What it sends are no pictures.
    BrokenFrames,
    /// It offers no format that can be read.
    Unsupported,
    /// The folder is empty or missing.
    NoPictures,
}

/// What the scanner tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A code came into sight.
    Sighting(Sighting),
    /// The source's state changed.
    Health {
        /// The source.
        name: String,
        /// Its state now.
        state: SourceState,
    },
}

/// Scans until it is stopped or dropped. Neither waits for a device that hangs.
pub struct Scanner(Pipeline);

impl Scanner {
    /// Starts scanning; `on_event` is called on the scanner's own threads and should return soon.
    pub fn start(source: Source, on_event: impl Fn(Event) + Send + Sync + 'static) -> Self {
        let name = source.name();
        Self(Pipeline::start(move || source.open(), events(name, on_event)))
    }

    /// The same with any source of frames.
    pub fn with_source(source: Box<dyn FrameSource>, on_event: impl Fn(Event) + Send + Sync + 'static) -> Self {
        let name = source.name();
        Self(Pipeline::start(move || source, events(name, on_event)))
    }

    /// The same with the texts, for the command line: `on_reading` gets each code once while it is in sight, `on_state`
    /// the source's health.
    pub fn with_texts(
        source: Source,
        on_reading: impl Fn(Reading) + Send + Sync + 'static,
        on_state: impl Fn(SourceState) + Send + Sync + 'static,
    ) -> Self {
        Self(Pipeline::start(
            move || source.open(),
            move |output| match output {
                Output::Reading(reading) => on_reading(reading),
                Output::State(state) => on_state(state),
            },
        ))
    }

    /// A handle on the latest frame.
    pub fn preview(&self) -> Preview {
        self.0.preview()
    }

    /// Waits until the source has come to its end; a camera and repeated pictures never do.
    pub fn wait(&self) {
        self.0.wait();
    }

    /// Ends it. An event that is being delivered at this moment may still arrive.
    pub fn stop(self) {}
}

fn events(name: String, on_event: impl Fn(Event) + Send + Sync + 'static) -> impl Fn(Output) + Send + Sync + 'static {
    move |output| {
        on_event(match output {
            Output::Reading(Reading { code, seen_at, .. }) => Event::Sighting(Sighting { code, seen_at }),
            Output::State(state) => Event::Health { name: name.clone(), state },
        });
    }
}
