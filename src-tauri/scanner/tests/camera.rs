//! A camera that does everything wrong: the pipeline goes on, says what is the matter, and recovers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Said, jpeg_with, ours, yuyv_with};
use scanner::Scanner;
use scanner::SourceState::{self, *};
use scanner::frames::Pixels;
use scanner::frames::camera::{Camera, Device, DeviceError, Limits};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What the fake device does next. Each step is used up, but for the last.
#[derive(Clone)]
enum Step {
    Opens,
    FailsToOpen(DeviceError),
    /// Waits for ever (until the test lets go).
    Hangs,
    Sends(Pixels),
    Fails(DeviceError),
    Panics,
}
use Step::*;

/// A camera played from a script. What the next try sees is the script's rest, as the next try with a real camera sees
/// what the camera is by then.
#[derive(Clone)]
struct Fake(Arc<Script>);

struct Script {
    steps: Mutex<VecDeque<Step>>,
    released: Mutex<bool>,
    changed: Condvar,
    /// Devices made and not dropped: threads that hold one.
    held: Mutex<usize>,
}

struct FakeDevice(Arc<Script>);

impl Fake {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self(Arc::new(Script {
            steps: Mutex::new(steps.into_iter().collect()),
            released: Mutex::new(false),
            changed: Condvar::new(),
            held: Mutex::new(0),
        }))
    }

    fn camera(&self) -> Box<Camera<FakeDevice>> {
        let script = Arc::clone(&self.0);
        let make = move || {
            *script.held.lock().unwrap() += 1;
            script.changed.notify_all();
            FakeDevice(Arc::clone(&script))
        };
        // Short where something hangs; else out of reach, or a loaded machine would look like a camera that hangs.
        let hangs = self.0.steps.lock().unwrap().iter().any(|step| matches!(step, Hangs));
        let patience = if hangs { Duration::from_millis(150) } else { common::LIMIT };
        let limits = Limits {
            open: patience,
            frame: patience,
            first_retry: Duration::from_millis(5),
            last_retry: Duration::from_millis(20),
            release: Duration::from_millis(100),
            stuck_threads: 3,
        };
        Box::new(Camera::new("Fake Cam".into(), make, limits))
    }

    /// Lets go of every thread that hangs.
    fn let_go(&self) {
        *self.0.released.lock().unwrap() = true;
        self.0.changed.notify_all();
    }

    fn wait_until_held(&self, devices: usize) {
        let held = self.0.held.lock().unwrap();
        let (held, waited) = self.0.changed.wait_timeout_while(held, common::LIMIT, |held| *held != devices).unwrap();
        assert!(!waited.timed_out(), "{} devices are held, not {devices}", *held);
    }
}

impl FakeDevice {
    fn step(&self) -> Step {
        let mut steps = self.0.steps.lock().unwrap();
        if steps.len() > 1 { steps.pop_front().unwrap() } else { steps.front().unwrap().clone() }
    }

    fn hang(&self) {
        let released = self.0.released.lock().unwrap();
        drop(self.0.changed.wait_while(released, |released| !*released).unwrap());
    }
}

impl Drop for FakeDevice {
    fn drop(&mut self) {
        *self.0.held.lock().unwrap() -= 1;
        self.0.changed.notify_all();
    }
}

impl Device for FakeDevice {
    fn open(&mut self) -> Result<(), DeviceError> {
        match self.step() {
            Opens => Ok(()),
            Hangs => {
                self.hang();
                Err(DeviceError::Gone)
            }
            FailsToOpen(error) => Err(error),
            Panics => panic!("the driver library panics, as planned"),
            // The script ends with a picture that is sent for ever: who comes to it is open.
            Sends(_) => Ok(()),
            Fails(error) => Err(error),
        }
    }

    fn next_frame(&mut self) -> Result<Pixels, DeviceError> {
        match self.step() {
            Sends(pixels) => {
                // The rate of a camera, so that the last step does not spin.
                std::thread::sleep(Duration::from_millis(5));
                Ok(pixels)
            }
            Hangs => {
                self.hang();
                Err(DeviceError::Gone)
            }
            Fails(error) => Err(error),
            Panics => panic!("the driver library panics, as planned"),
            Opens | FailsToOpen(_) => unreachable!("the script opens where a frame is wanted"),
        }
    }
}

/// Plays a script that ends with a code of ours for ever: whatever went before, it must be read.
fn recovers(steps: Vec<Step>, states: &[SourceState]) -> Said {
    let text = ours(1);
    let script = steps.into_iter().chain([Opens, Sends(yuyv_with(&[&text]))]);
    let (fake, said) = (Fake::new(script), Said::default());
    let scanner = Scanner::with_source(fake.camera(), said.listener());
    said.wait_for_states(states);
    said.wait_for_codes(&[&text]);
    scanner.stop();
    fake.let_go();
    fake.wait_until_held(0);
    said
}

#[test]
fn a_camera_in_good_order_is_opened_and_live_and_reads() {
    let said = recovers(vec![], &[Opening, Live]);
    assert_eq!(said.states(), [Opening, Live]);
}

#[test]
fn a_camera_that_hangs_while_it_opens_is_left_behind_and_tried_again() {
    recovers(vec![Hangs], &[Opening, Stalled, Live]);
}

#[test]
fn a_camera_that_stops_sending_is_left_behind_and_opened_again() {
    recovers(vec![Opens, Sends(yuyv_with(&[])), Hangs], &[Opening, Live, Stalled, Live]);
}

#[test]
fn a_thread_of_ours_that_still_holds_the_camera_is_not_called_another_program() {
    let said = recovers(
        vec![Opens, Sends(yuyv_with(&[])), Hangs, FailsToOpen(DeviceError::Busy), FailsToOpen(DeviceError::Busy)],
        &[Live, Stalled, Live],
    );
    assert!(!said.states().contains(&Busy), "{:?}", said.states());
}

#[test]
fn a_camera_that_vanishes_is_lost_and_comes_back() {
    let gone = DeviceError::NotFound;
    let said = recovers(
        vec![Opens, Sends(yuyv_with(&[])), Fails(DeviceError::Gone), FailsToOpen(gone.clone()), FailsToOpen(gone)],
        &[Opening, Live, Lost, Live],
    );
    assert!(!said.states().contains(&NoCamera), "it was there: {:?}", said.states());
}

#[test]
fn a_camera_plugged_in_later_is_found() {
    recovers(vec![FailsToOpen(DeviceError::NotFound), FailsToOpen(DeviceError::NotFound)], &[Opening, NoCamera, Live]);
}

#[test]
fn a_busy_camera_is_called_busy_and_taken_when_it_is_free() {
    recovers(vec![FailsToOpen(DeviceError::Busy), FailsToOpen(DeviceError::Busy)], &[Opening, Busy, Live]);
}

#[test]
fn a_missing_permission_is_named_and_taken_up_when_it_is_given() {
    recovers(vec![FailsToOpen(DeviceError::NoPermission)], &[Opening, NoPermission, Live]);
}

#[test]
fn a_camera_without_a_usable_format_is_called_unsupported() {
    let fault = DeviceError::Unsupported("Framerate not whole number: 2997 / 100".into());
    recovers(vec![FailsToOpen(fault)], &[Opening, Unsupported, Live]);
}

#[test]
fn a_driver_error_in_the_stream_reopens_the_camera() {
    let fault = DeviceError::Other("Input/output error (os error 5)".into());
    recovers(vec![Opens, Sends(yuyv_with(&[])), Fails(fault)], &[Opening, Live, Lost, Live]);
}

#[test]
fn a_driver_library_that_panics_does_not_take_the_process_along() {
    recovers(vec![Panics, Opens, Sends(yuyv_with(&[])), Panics], &[Opening, Unsupported, Live, Lost, Live]);
}

#[test]
fn broken_frames_are_named_survived_and_forgotten() {
    let noise: Vec<u8> = (0..3000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let jpeg = jpeg_with(&[&ours(9)]);
    let mut garbled = jpeg.clone();
    let third = garbled.len() / 3;
    for (byte, noise) in garbled[third..].iter_mut().zip(&noise) {
        *byte = *noise;
    }
    let bad: Vec<Vec<u8>> = vec![vec![], vec![0xff, 0xd8], vec![0; 3000], noise.clone(), jpeg[..20].to_vec()];
    let mut steps = vec![Opens, Sends(yuyv_with(&[]))];
    // Ten in a row are a fault: each frame must be seen, so each kind is sent often enough to outlast dropped ones.
    steps.extend(bad.iter().cycle().take(200).map(|bytes| Sends(Pixels::Jpeg(bytes.as_slice().into()))));
    steps.push(Sends(Pixels::Jpeg(garbled.as_slice().into())));
    steps.push(Sends(Pixels::Yuyv { data: vec![0; 100], width: 640, height: 480 }));
    steps.push(Sends(Pixels::Jpeg(jpeg.as_slice().into())));
    let text = ours(9);
    let (fake, said) = (Fake::new(steps), Said::default());
    let scanner = Scanner::with_source(fake.camera(), said.listener());
    said.wait_for_states(&[Opening, Live, BrokenFrames, Live]);
    said.wait_for_codes(&[&text]);
    let preview = scanner.preview().next(0, common::LIMIT).expect("a preview").1;
    assert!(preview.starts_with(&[0xff, 0xd8]) && preview.ends_with(&[0xff, 0xd9]));
    scanner.stop();
    fake.wait_until_held(0);
}

#[test]
fn threads_that_hang_are_not_piled_up_without_bound() {
    let (fake, said) = (Fake::new([Hangs]), Said::default());
    let scanner = Scanner::with_source(fake.camera(), said.listener());
    said.wait_for_states(&[Opening, Stalled]);
    fake.wait_until_held(3);
    // Were there no bound, a fourth would follow within the retry delay and the limit for opening.
    std::thread::sleep(Duration::from_millis(400));
    fake.wait_until_held(3);
    fake.let_go();
    scanner.stop();
    fake.wait_until_held(0);
}

#[test]
fn dropping_the_scanner_while_the_device_hangs_comes_back() {
    for steps in [vec![Hangs], vec![Opens, Hangs], vec![Opens, Sends(yuyv_with(&[])), Hangs]] {
        let opens = matches!(steps[0], Opens);
        let (fake, said) = (Fake::new(steps), Said::default());
        let scanner = Scanner::with_source(fake.camera(), said.listener());
        said.wait_for_states(&[Opening]);
        fake.wait_until_held(1);
        // On a thread of its own, so that a drop that hangs fails this test instead of stopping it.
        let (done, dropped) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(scanner);
            done.send(()).unwrap();
        });
        dropped.recv_timeout(common::LIMIT).unwrap_or_else(|_| panic!("the drop hangs (opened: {opens})"));
        let events = said.all().len();
        fake.let_go();
        fake.wait_until_held(0);
        assert_eq!(said.all().len(), events, "nothing is said after the end");
    }
}

#[test]
fn a_scanner_may_be_dropped_by_its_own_callback() {
    let fake = Fake::new([Opens, Sends(yuyv_with(&[]))]);
    let slot: Arc<Mutex<Option<Scanner>>> = Arc::default();
    let (done, dropped) = std::sync::mpsc::channel();
    let theirs = Arc::clone(&slot);
    // The callback waits for the slot, which this thread fills after the start.
    let filled = slot.lock().unwrap();
    let scanner = Scanner::with_source(fake.camera(), move |_| {
        if theirs.lock().unwrap().take().is_some() {
            done.send(()).unwrap();
        }
    });
    let mut filled = filled;
    *filled = Some(scanner);
    drop(filled);
    dropped.recv_timeout(common::LIMIT).expect("the callback comes back from the drop");
    fake.wait_until_held(0);
}

#[test]
fn codes_shown_one_after_the_other_and_together_are_each_told_once() {
    let (a, b) = (ours(1), ours(2));
    let mut steps = vec![Opens];
    for texts in [vec!["https://example.org/menu"], vec![a.as_str()], vec!["https://example.org/x", b.as_str()]] {
        // Often enough that a slow reader, which drops frames, sees each picture.
        steps.extend(std::iter::repeat_n(Sends(yuyv_with(&texts)), 60));
    }
    let (fake, said) = (Fake::new(steps), Said::default());
    let _scanner = Scanner::with_source(fake.camera(), said.listener());
    said.wait_for_codes(&["foreign", &a, &b]);
    assert_eq!(said.codes().len(), 3, "{:?}", said.codes());
}
