//! The real cameras, through nokhwa, around its sharp edges.

use super::Pixels;
use super::camera::{Device, DeviceError};
use nokhwa::utils::{ApiBackend, CameraFormat, CameraIndex, FrameFormat, RequestedFormat, RequestedFormatType};
use nokhwa::{Camera, NokhwaError};
use std::sync::mpsc;
use std::time::Duration;

/// A driver that hangs while it is asked for its name must not hang the settings page.
const LIST_LIMIT: Duration = Duration::from_secs(3);

/// What we read codes from best: more pixels cost time, fewer cost distance.
const WANTED: (u32, u32) = (1280, 720);
const FEWEST_FPS: u32 = 15;
const MOST_FPS: u32 = 30;

const FORMATS: [FrameFormat; 6] = [
    FrameFormat::MJPEG,
    FrameFormat::YUYV,
    FrameFormat::NV12,
    FrameFormat::GRAY,
    FrameFormat::RAWRGB,
    FrameFormat::RAWBGR,
];

/// A camera that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CameraInfo {
    /// Its number; may change when it is plugged in again.
    pub index: u32,
    /// Its name as the driver gives it.
    pub name: String,
}

/// The cameras there are. Empty when the drivers do not answer within a few seconds.
pub fn cameras() -> Vec<CameraInfo> {
    let (found, answer) = mpsc::channel();
    let started = std::thread::Builder::new().name("camera list".into()).spawn(move || {
        let list = std::panic::catch_unwind(list).unwrap_or_default();
        // Nobody listens any more when the limit has passed.
        let _ = found.send(list);
    });
    match started {
        Ok(_) => answer.recv_timeout(LIST_LIMIT).unwrap_or_else(|_| {
            tracing::warn!("the camera drivers do not answer");
            Vec::new()
        }),
        Err(error) => {
            tracing::warn!(%error, "no thread to list the cameras");
            Vec::new()
        }
    }
}

fn list() -> Vec<CameraInfo> {
    let mut list: Vec<_> = nokhwa::query(ApiBackend::Auto)
        .inspect_err(|error| tracing::warn!(%error, "cameras cannot be listed"))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|info| Some(CameraInfo { index: info.index().as_index().ok()?, name: info.human_name() }))
        .filter(|info| is_capture_node(info.index))
        .collect();
    list.sort_by_key(|info| info.index);
    list.dedup_by_key(|info| info.index);
    list
}

/// Linux lists a camera's metadata node as a camera of its own; it can never give a picture.
#[cfg(target_os = "linux")]
fn is_capture_node(index: u32) -> bool {
    use v4l::capability::Flags;
    match v4l::Device::new(index as usize).and_then(|device| device.query_caps()) {
        Ok(caps) => caps.capabilities.contains(Flags::VIDEO_CAPTURE),
        // Better listed and explained when it is opened (no permission, busy) than not there at all.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

#[cfg(not(target_os = "linux"))]
fn is_capture_node(_index: u32) -> bool {
    true
}

/// A camera by number, or by name wherever it is plugged in now.
pub(super) struct NokhwaDevice {
    index: u32,
    name: Option<String>,
    camera: Option<Camera>,
}

impl NokhwaDevice {
    pub(super) fn new(index: u32, name: Option<String>) -> Self {
        Self { index, name, camera: None }
    }

    /// Numbers change when cameras are plugged in again; a name that was remembered goes before the number.
    fn current_index(&self) -> Result<u32, DeviceError> {
        let Some(name) = &self.name else { return Ok(self.index) };
        let list = list();
        let same_name = || list.iter().filter(|info| info.name == *name);
        same_name()
            .find(|info| info.index == self.index)
            .or_else(|| same_name().next())
            .map(|info| info.index)
            .ok_or(DeviceError::NotFound)
    }
}

impl Device for NokhwaDevice {
    fn open(&mut self) -> Result<(), DeviceError> {
        let index = CameraIndex::Index(self.current_index()?);
        // Any format at first, since only an opened camera says what it offers.
        let any = || RequestedFormat::with_formats(RequestedFormatType::None, &FORMATS);
        let mut camera = twice(|| Camera::new(index.clone(), any())).map_err(|error| classify(&error))?;
        let offered = camera.compatible_camera_formats().map_err(|error| classify(&error))?;
        let best = choose(&offered).ok_or_else(|| DeviceError::Unsupported("none of its formats is known".into()))?;
        if camera.camera_format() != best {
            // Made anew instead of changed: a change leaves nokhwa's idea of the format behind when it is refused.
            drop(camera);
            let exactly = || RequestedFormat::with_formats(RequestedFormatType::Exact(best), &FORMATS);
            camera = twice(|| Camera::new(index.clone(), exactly())).map_err(|error| classify(&error))?;
        }
        camera.open_stream().map_err(|error| classify(&error))?;
        tracing::info!(camera = %camera.info().human_name(), format = %camera.camera_format(), "the camera is open");
        self.camera = Some(camera);
        Ok(())
    }

    fn next_frame(&mut self) -> Result<Pixels, DeviceError> {
        let camera = self.camera.as_mut().ok_or_else(|| DeviceError::Other("the camera is not open".into()))?;
        let buffer = camera.frame().map_err(|error| classify(&error))?;
        let (width, height) = (buffer.resolution().width() as usize, buffer.resolution().height() as usize);
        let bytes = buffer.buffer();
        Ok(match buffer.source_frame_format() {
            FrameFormat::MJPEG => Pixels::Jpeg(bytes.into()),
            FrameFormat::YUYV => Pixels::Yuyv { data: bytes.to_vec(), width, height },
            FrameFormat::NV12 | FrameFormat::GRAY => Pixels::Gray { data: bytes.to_vec(), width, height },
            FrameFormat::RAWRGB => Pixels::Rgb { data: bytes.to_vec(), width, height },
            FrameFormat::RAWBGR => {
                let data = bytes.chunks_exact(3).flat_map(|p| [p[2], p[1], p[0]]).collect();
                Pixels::Rgb { data, width, height }
            }
        })
    }
}

/// A new format at the old frame rate is refused once with "Not same/Rejected", and taken the second time.
fn twice(mut open: impl FnMut() -> Result<Camera, NokhwaError>) -> Result<Camera, NokhwaError> {
    match open() {
        Err(error) if error.to_string().contains("Not same/Rejected") => open(),
        other => other,
    }
}

/// The best format for reading codes: fast enough, then nearest to 720p, then MJPEG (the preview needs no work) before
/// YUYV before the rest, then the higher rate up to 30 a second.
fn choose(offered: &[CameraFormat]) -> Option<CameraFormat> {
    let wanted = u64::from(WANTED.0) * u64::from(WANTED.1);
    offered
        .iter()
        .filter_map(|format| Some((format, FORMATS.iter().position(|known| *known == format.format())?)))
        .min_by_key(|(format, rank)| {
            let area = u64::from(format.width()) * u64::from(format.height());
            let shape = u64::from(format.width().abs_diff(WANTED.0)) + u64::from(format.height().abs_diff(WANTED.1));
            let rate = format.frame_rate();
            (rate < FEWEST_FPS, area.abs_diff(wanted), shape, *rank, rate.abs_diff(MOST_FPS))
        })
        .map(|(format, _)| *format)
}

/// nokhwa hands the system's error on as text only.
fn classify(error: &NokhwaError) -> DeviceError {
    let text = error.to_string();
    let system = text
        .split("os error ")
        .nth(1)
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok());
    match system {
        Some(2) => DeviceError::NotFound,
        Some(6 | 19) => DeviceError::Gone,
        Some(1 | 13) => DeviceError::NoPermission,
        Some(16) => DeviceError::Busy,
        Some(_) => DeviceError::Other(text),
        None => match error {
            NokhwaError::GetPropertyError { .. }
            | NokhwaError::SetPropertyError { .. }
            | NokhwaError::UnsupportedOperationError(_)
            | NokhwaError::NotImplementedError(_) => DeviceError::Unsupported(text),
            _ => DeviceError::Other(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nokhwa::utils::Resolution;

    fn format(width: u32, height: u32, format: FrameFormat, fps: u32) -> CameraFormat {
        CameraFormat::new(Resolution::new(width, height), format, fps)
    }

    #[test]
    fn the_usual_webcam_gives_720p_mjpeg_at_thirty() {
        let offered = [
            format(640, 480, FrameFormat::YUYV, 30),
            format(1280, 720, FrameFormat::YUYV, 10),
            format(1920, 1080, FrameFormat::MJPEG, 30),
            format(1280, 720, FrameFormat::MJPEG, 15),
            format(1280, 720, FrameFormat::MJPEG, 30),
            format(1280, 720, FrameFormat::MJPEG, 60),
        ];
        assert_eq!(choose(&offered), Some(format(1280, 720, FrameFormat::MJPEG, 30)));
    }

    #[test]
    fn a_slow_large_format_yields_to_a_fast_smaller_one() {
        let offered = [format(1280, 720, FrameFormat::YUYV, 10), format(640, 480, FrameFormat::YUYV, 30)];
        assert_eq!(choose(&offered), Some(format(640, 480, FrameFormat::YUYV, 30)));
        assert_eq!(choose(&offered[..1]), Some(offered[0]), "slow is better than nothing");
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn the_drivers_words_become_states_people_can_act_on() {
        let open = |error: &str| classify(&NokhwaError::OpenDeviceError("0".into(), format!("V4L2 Error: {error}")));
        assert_eq!(open("No such file or directory (os error 2)"), DeviceError::NotFound);
        assert_eq!(open("Permission denied (os error 13)"), DeviceError::NoPermission);
        assert_eq!(
            classify(&NokhwaError::OpenStreamError("Device or resource busy (os error 16)".into())),
            DeviceError::Busy
        );
        assert_eq!(classify(&NokhwaError::ReadFrameError("No such device (os error 19)".into())), DeviceError::Gone);
        assert!(matches!(
            classify(&NokhwaError::ReadFrameError("Input/output error (os error 5)".into())),
            DeviceError::Other(_)
        ));
        let refused = NokhwaError::GetPropertyError {
            property: "V4L2 FrameRate".into(),
            error: "Framerate not whole number: 2997 / 100".into(),
        };
        assert!(matches!(classify(&refused), DeviceError::Unsupported(_)));
    }
}
