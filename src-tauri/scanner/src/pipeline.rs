//! Frame -> luma -> decode -> payload -> no doubles, on threads of its own.

use crate::decode;
use crate::frames::{Frame, FrameSource, Next};
use crate::{Dedupe, Luma, Preview, Reading, SourceState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How soon a stop is noticed while no frame comes.
const TICK: Duration = Duration::from_millis(50);

/// So many frames in a row without anything, and the rescue stage gets one: its cost is spread over them.
pub const RESCUE_EVERY: u32 = 5;

/// So many frames in a row must be broken before it is called a fault; single ones are usual when a camera starts.
const BROKEN_IN_A_ROW: u32 = 10;

/// How long stopping waits for the threads. They end within a frame; a callback that does not return is not waited for.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// What the pipeline says.
pub(crate) enum Output {
    Reading(Reading),
    State(SourceState),
}

/// The running pipeline; stops when dropped.
pub(crate) struct Pipeline {
    shared: Arc<Shared>,
    preview: Preview,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    dedupe: Mutex<Dedupe>,
    out: Box<dyn Fn(Output) + Send + Sync>,
    ended: Mutex<bool>,
    has_ended: Condvar,
}

impl Pipeline {
    pub(crate) fn start(
        make_source: impl FnOnce() -> Box<dyn FrameSource> + Send + 'static,
        out: impl Fn(Output) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            dedupe: Mutex::new(Dedupe::default()),
            out: Box::new(out),
            ended: Mutex::new(false),
            has_ended: Condvar::new(),
        });
        let preview = Preview::default();
        let thread = {
            let (shared, preview) = (Arc::clone(&shared), preview.clone());
            thread::Builder::new().name("scanner".into()).spawn(move || {
                let run = std::panic::AssertUnwindSafe(|| run(make_source(), &shared, &preview));
                if std::panic::catch_unwind(run).is_err() {
                    tracing::error!("the scanner stopped by a fault of its own");
                    shared.say(Output::State(SourceState::Lost));
                }
                preview.end();
                *shared.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
                shared.has_ended.notify_all();
            })
        };
        let thread = thread.inspect_err(|error| tracing::error!(%error, "no thread for the scanner")).ok();
        Self { shared, preview, thread }
    }

    pub(crate) fn preview(&self) -> Preview {
        self.preview.clone()
    }

    /// Waits until the source has come to its end.
    pub(crate) fn wait(&self) {
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.shared.has_ended.wait_while(ended, |ended| !*ended));
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // A callback may drop the scanner: waiting for oneself would take the whole limit.
        let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) else {
            return;
        };
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.has_ended.wait_timeout_while(ended, STOP_LIMIT, |ended| !*ended);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 {
            // It has said its last word, so this does not block.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn say(&self, output: Output) {
        if !self.stopped() {
            (self.out)(output);
        }
    }

    /// Passes on what is new in a frame.
    fn tell(&self, texts: &[String], seen_at: Instant) {
        if texts.is_empty() {
            return;
        }
        let news: Vec<_> = {
            let mut dedupe = self.dedupe.lock().unwrap_or_else(PoisonError::into_inner);
            dedupe.news(texts, seen_at)
        };
        for (text, code) in news {
            self.say(Output::Reading(Reading { text: text.to_owned(), code, seen_at }));
        }
    }
}

fn run(mut source: Box<dyn FrameSource>, shared: &Arc<Shared>, preview: &Preview) {
    let rescue = Rescue::start(Arc::clone(shared));
    let mut state = None;
    let mut say_state = |new: SourceState| {
        if state.replace(new) != Some(new) {
            shared.say(Output::State(new));
        }
    };
    let (mut broken, mut empty) = (0u32, 0u32);
    while !shared.stopped() {
        match source.next(TICK) {
            Next::Frame(Frame { pixels, taken_at }) => {
                let Ok(luma) = pixels.luma() else {
                    broken = broken.saturating_add(1);
                    tracing::debug!(in_a_row = broken, "a broken frame");
                    if broken == BROKEN_IN_A_ROW {
                        say_state(SourceState::BrokenFrames);
                    }
                    continue;
                };
                broken = 0;
                say_state(SourceState::Live);
                preview.show(pixels);
                let texts = decode::main_stage(&luma);
                if texts.is_empty() {
                    empty += 1;
                    if empty >= RESCUE_EVERY && rescue.offer(luma, taken_at) {
                        empty = 0;
                    }
                } else {
                    empty = 0;
                    shared.tell(&texts, taken_at);
                }
            }
            Next::State(new) => say_state(new),
            Next::Nothing => {}
            Next::End => break,
        }
    }
}

/// The rescue stage on a thread of its own, so that it never holds up the next frame.
struct Rescue {
    desk: Arc<Desk>,
}

/// Where the frame lies that is to be looked at next.
struct Desk {
    job: Mutex<Job>,
    changed: Condvar,
}

enum Job {
    Idle,
    Waiting(Luma, Instant),
    Busy,
    Stop,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rescue {
    fn start(shared: Arc<Shared>) -> Self {
        let desk = Arc::new(Desk { job: Mutex::new(Job::Idle), changed: Condvar::new() });
        let theirs = Arc::clone(&desk);
        let started = thread::Builder::new().name("scanner rescue".into()).spawn(move || {
            loop {
                let job = theirs.lock();
                let mut job = theirs
                    .changed
                    .wait_while(job, |job| matches!(job, Job::Idle | Job::Busy))
                    .unwrap_or_else(PoisonError::into_inner);
                let Job::Waiting(luma, taken_at) = std::mem::replace(&mut *job, Job::Busy) else {
                    *job = Job::Stop;
                    return;
                };
                drop(job);
                let texts = decode::rescue_stage(&luma, decode::LIVE_BUDGET);
                shared.tell(&texts, taken_at);
                let mut job = theirs.lock();
                if matches!(*job, Job::Busy) {
                    *job = Job::Idle;
                }
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for the rescue stage");
        }
        Self { desk }
    }

    /// False when it is still busy with an older frame.
    fn offer(&self, luma: Luma, taken_at: Instant) -> bool {
        let mut job = self.desk.lock();
        let free = matches!(*job, Job::Idle);
        if free {
            *job = Job::Waiting(luma, taken_at);
            self.desk.changed.notify_one();
        }
        free
    }
}

impl Drop for Rescue {
    fn drop(&mut self) {
        *self.desk.lock() = Job::Stop;
        self.desk.changed.notify_one();
    }
}
