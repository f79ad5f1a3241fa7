//! A camera that may hang, vanish, be busy or come back: a thread of its own for each try, and a watchdog over it.
//!
//! Drivers can wait for ever inside any call, and a thread cannot be ended from outside. So each opened device lives on
//! its own thread; one that makes no progress is left behind, and told to let go of the device should it ever come to
//! itself. The number of such threads is bounded, since each may hold the device.

use super::{Frame, FrameSource, Next, Pixels};
use crate::{SourceState, guard};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A camera as its driver offers it. Each call may hang for ever or panic; the trait exists so that the faults can be
/// played in tests, where no camera is.
pub trait Device: 'static {
    /// Opens the camera and starts its stream.
    ///
    /// # Errors
    /// What kept it from opening.
    fn open(&mut self) -> Result<(), DeviceError>;

    /// Waits for the next frame.
    ///
    /// # Errors
    /// What ended the stream.
    fn next_frame(&mut self) -> Result<Pixels, DeviceError>;
}

/// Why a camera gives no frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no such camera.
    #[error("no such camera")]
    NotFound,
    /// It was there a moment ago.
    #[error("the camera is gone")]
    Gone,
    /// Another program has it.
    #[error("the camera is in use by another program")]
    Busy,
    /// The user may not use it.
    #[error("no permission to use the camera")]
    NoPermission,
    /// It offers no format that we can use.
    #[error("the camera offers no usable format: {0}")]
    Unsupported(String),
    /// Anything else the driver said.
    #[error("{0}")]
    Other(String),
}

/// How long to wait for what.
#[derive(Debug, Clone)]
pub struct Limits {
    /// A device must have opened by then. Slow USB cameras take two to three seconds.
    pub open: Duration,
    /// A frame must come within this time. Cameras pause for a second when they change exposure.
    pub frame: Duration,
    /// Wait before the first new try; doubled with each failure.
    pub first_retry: Duration,
    /// The longest wait between two tries.
    pub last_retry: Duration,
    /// At the end a thread that still answers gets this long to give the device back.
    pub release: Duration,
    /// No new try while so many threads are stuck.
    pub stuck_threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            open: Duration::from_secs(10),
            frame: Duration::from_secs(4),
            first_retry: Duration::from_millis(250),
            last_retry: Duration::from_secs(4),
            release: Duration::from_millis(200),
            stuck_threads: 4,
        }
    }
}

/// Makes the device that the next try works with, on the thread that works with it.
type MakeDevice<D> = Arc<dyn Fn() -> D + Send + Sync>;

/// The camera as a source of frames.
pub struct Camera<D: Device> {
    name: String,
    make: MakeDevice<D>,
    limits: Limits,
    phase: Phase,
    stuck: Vec<Arc<Worker>>,
    retry: Duration,
    had_frames: bool,
    said_opening: bool,
}

enum Phase {
    Waiting { until: Instant },
    Running(Arc<Worker>),
}

impl<D: Device> Camera<D> {
    /// A camera that is opened by and by, as often as it takes.
    pub fn new(name: String, make: impl Fn() -> D + Send + Sync + 'static, limits: Limits) -> Self {
        let retry = limits.first_retry;
        Self {
            name,
            make: Arc::new(make),
            limits,
            phase: Phase::Waiting { until: Instant::now() },
            stuck: Vec::new(),
            retry,
            had_frames: false,
            said_opening: false,
        }
    }

    /// Leaves the current thread behind if it has not ended, and plans the next try.
    fn give_up(&mut self, worker: &Arc<Worker>) {
        worker.abandon();
        if !worker.lock().ended {
            self.stuck.push(Arc::clone(worker));
        }
        self.phase = Phase::Waiting { until: Instant::now() + self.retry };
        self.retry = (self.retry * 2).min(self.limits.last_retry);
    }

    /// What to tell people about a failure.
    fn state_for(&self, error: &DeviceError, opened: bool) -> SourceState {
        match error {
            // A thread of ours that hangs still holds the device: it is not another program's fault.
            DeviceError::Busy if !self.stuck.is_empty() => SourceState::Stalled,
            DeviceError::Busy => SourceState::Busy,
            DeviceError::NoPermission => SourceState::NoPermission,
            DeviceError::Unsupported(_) => SourceState::Unsupported,
            // "Plug it in again" helps only where it was plugged in before.
            DeviceError::NotFound | DeviceError::Gone if !self.had_frames => SourceState::NoCamera,
            DeviceError::NotFound | DeviceError::Gone => SourceState::Lost,
            DeviceError::Other(_) if opened || self.had_frames => SourceState::Lost,
            DeviceError::Other(_) => SourceState::Unsupported,
        }
    }
}

impl<D: Device> FrameSource for Camera<D> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn next(&mut self, limit: Duration) -> Next {
        let deadline = Instant::now() + limit;
        loop {
            let now = Instant::now();
            match &self.phase {
                Phase::Waiting { until } => {
                    let until = *until;
                    self.stuck.retain(|worker| !worker.lock().ended);
                    let full = self.stuck.len() >= self.limits.stuck_threads;
                    if now >= until && !full {
                        match Worker::start(Arc::clone(&self.make)) {
                            Ok(worker) => self.phase = Phase::Running(worker),
                            Err(error) => {
                                tracing::warn!(%error, "no thread for the camera");
                                self.phase = Phase::Waiting { until: now + self.limits.last_retry };
                            }
                        }
                        if !std::mem::replace(&mut self.said_opening, true) {
                            return Next::State(SourceState::Opening);
                        }
                        continue;
                    }
                    if now >= deadline {
                        return Next::Nothing;
                    }
                    let wake = if full { deadline } else { until.min(deadline) };
                    std::thread::sleep(wake - now);
                }
                Phase::Running(worker) => {
                    let worker = Arc::clone(worker);
                    let mut status = worker.lock();
                    if let Some(frame) = status.frame.take() {
                        drop(status);
                        self.had_frames = true;
                        self.retry = self.limits.first_retry;
                        return Next::Frame(frame);
                    }
                    if let Some(error) = status.error.take() {
                        let opened = status.opened;
                        drop(status);
                        self.stuck.retain(|worker| !worker.lock().ended);
                        let state = self.state_for(&error, opened);
                        tracing::warn!(camera = %self.name, %error, ?state, "the camera failed");
                        self.give_up(&worker);
                        return Next::State(state);
                    }
                    let allowed = if status.opened { self.limits.frame } else { self.limits.open };
                    let overdue = status.progress + allowed;
                    if now >= overdue {
                        let opened = status.opened;
                        drop(status);
                        tracing::warn!(camera = %self.name, opened, "the camera does not answer, its thread is left behind");
                        self.give_up(&worker);
                        return Next::State(SourceState::Stalled);
                    }
                    if now >= deadline {
                        return Next::Nothing;
                    }
                    worker.wait(status, overdue.min(deadline) - now);
                }
            }
        }
    }
}

impl<D: Device> Drop for Camera<D> {
    fn drop(&mut self) {
        let Phase::Running(worker) = &self.phase else { return };
        worker.abandon();
        // A camera in good order ends within a frame: whoever opens it next does not find it busy.
        let deadline = Instant::now() + self.limits.release;
        loop {
            let status = worker.lock();
            let now = Instant::now();
            if status.ended || now >= deadline {
                return;
            }
            worker.wait(status, deadline - now);
        }
    }
}

/// One try with one device, shared by its thread and the source.
struct Worker {
    status: Mutex<Status>,
    changed: Condvar,
}

struct Status {
    opened: bool,
    /// When the device last gave a sign of life.
    progress: Instant,
    /// The latest frame; an older one that nobody took is dropped.
    frame: Option<Frame>,
    error: Option<DeviceError>,
    abandoned: bool,
    /// The thread is done and the device released.
    ended: bool,
}

impl Worker {
    fn start<D: Device>(make: MakeDevice<D>) -> std::io::Result<Arc<Self>> {
        let worker = Arc::new(Self {
            status: Mutex::new(Status {
                opened: false,
                progress: Instant::now(),
                frame: None,
                error: None,
                abandoned: false,
                ended: false,
            }),
            changed: Condvar::new(),
        });
        let shared = Arc::clone(&worker);
        std::thread::Builder::new().name("camera".into()).spawn(move || {
            let run = || {
                let mut device = make();
                if let Err(error) = shared.run(&mut device) {
                    // Said before the device is dropped, since that may hang as well.
                    shared.fail(error);
                }
            };
            // nokhwa panics on some errors instead of returning them, and when a stream cannot be stopped.
            if guard::catch("the camera's driver library", run).is_none() {
                shared.fail(DeviceError::Other("the camera's driver library panicked".into()));
            }
            shared.lock().ended = true;
            shared.changed.notify_all();
        })?;
        Ok(worker)
    }

    fn run(&self, device: &mut impl Device) -> Result<(), DeviceError> {
        device.open()?;
        {
            let mut status = self.lock();
            status.opened = true;
            status.progress = Instant::now();
        }
        loop {
            if self.lock().abandoned {
                return Ok(());
            }
            let pixels = device.next_frame()?;
            let taken_at = Instant::now();
            let mut status = self.lock();
            status.progress = taken_at;
            status.frame = Some(Frame { pixels, taken_at });
            self.changed.notify_all();
        }
    }

    fn fail(&self, error: DeviceError) {
        self.lock().error.get_or_insert(error);
        self.changed.notify_all();
    }

    fn abandon(&self) {
        self.lock().abandoned = true;
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, status: MutexGuard<'_, Status>, limit: Duration) {
        drop(self.changed.wait_timeout(status, limit));
    }
}
