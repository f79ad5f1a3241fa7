//! Pictures in place of a camera, through the whole pipeline.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Said, frame_with, jpeg_with, ours, put};
use scanner::SourceState::{self, *};
use scanner::frames::pictures::Pictures;
use scanner::frames::{FrameSource, Next, Pixels};
use scanner::{Scanner, Source};
use std::path::Path;
use std::time::{Duration, Instant};

fn start(path: &Path, repeat: bool) -> (Scanner, Said) {
    let said = Said::default();
    let source = Source::Pictures { path: path.to_owned(), fps: 50.0, repeat };
    (Scanner::start(source, said.listener()), said)
}

fn png_with(texts: &[&str], width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::GrayImage::from_raw(width, height, frame_with(texts, width as usize, height as usize))
        .unwrap()
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

/// Takes from a source until it has something to say.
fn next(source: &mut Pictures) -> Next {
    let deadline = Instant::now() + common::LIMIT;
    loop {
        match source.next(Duration::from_millis(50)) {
            Next::Nothing => assert!(Instant::now() < deadline, "the source says nothing"),
            other => return other,
        }
    }
}

fn next_frame(source: &mut Pictures) -> Pixels {
    match next(source) {
        Next::Frame(frame) => frame.pixels,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_folder_is_read_once_in_name_order_and_the_last_picture_stays_as_preview() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("2.jpg"), &jpeg_with(&[&ours(2)]));
    put(&folder.path().join("1.png"), &png_with(&[&ours(1)], 640, 480));
    put(&folder.path().join("3.jpeg"), &jpeg_with(&[&ours(3)]));
    put(&folder.path().join("notes.txt"), b"no picture");
    let (scanner, said) = start(folder.path(), false);
    scanner.wait();
    said.wait_for_codes(&[&ours(1), &ours(2), &ours(3)]);
    assert_eq!(said.states(), [Live], "unreadable strangers are not taken for pictures");
    let (sequence, last) = scanner.preview().next(0, Duration::ZERO).expect("the last picture");
    assert_eq!(sequence, 3);
    let luma = scanner::jpeg::luma(&last).unwrap();
    assert_eq!(scanner::decode::main_stage(&luma), [ours(3)]);
}

#[test]
fn a_folder_is_read_anew_on_each_round() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("1.jpg"), &jpeg_with(&[&ours(1)]));
    let (_scanner, said) = start(folder.path(), true);
    said.wait_for_codes(&[&ours(1)]);
    put(&folder.path().join("0.jpg"), &jpeg_with(&[&ours(2)]));
    said.wait_for_codes(&[&ours(1), &ours(2)]);
    // Replaced in place: the same name, another picture.
    put(&folder.path().join("1.jpg"), &jpeg_with(&[&ours(3)]));
    said.wait_for_codes(&[&ours(1), &ours(2), &ours(3)]);
}

#[test]
fn one_file_that_is_replaced_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("screen.png");
    put(&file, &png_with(&["https://example.org"], 640, 480));
    let (_scanner, said) = start(&file, true);
    said.wait_for_codes(&["foreign"]);
    put(&file, &png_with(&[&ours(1)], 640, 480));
    said.wait_for_codes(&["foreign", &ours(1)]);
}

#[test]
fn a_missing_or_empty_folder_is_named_and_looked_at_again() {
    let root = tempfile::tempdir().unwrap();
    for repeat in [false, true] {
        let folder = root.path().join(format!("later {repeat}"));
        let (_scanner, said) = start(&folder, repeat);
        said.wait_for_states(&[NoPictures]);
        std::fs::create_dir(&folder).unwrap();
        put(&folder.join("1.jpg"), &jpeg_with(&[&ours(1)]));
        said.wait_for_states(&[NoPictures, Live]);
        said.wait_for_codes(&[&ours(1)]);
    }
}

#[test]
fn pictures_that_are_taken_away_end_in_no_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("1.jpg");
    put(&file, &jpeg_with(&[&ours(1)]));
    let (_scanner, said) = start(folder.path(), true);
    said.wait_for_states(&[Live]);
    std::fs::remove_file(&file).unwrap();
    said.wait_for_states(&[Live, NoPictures]);
    put(&file, &jpeg_with(&[&ours(2)]));
    said.wait_for_states(&[Live, NoPictures, Live]);
    said.wait_for_codes(&[&ours(1), &ours(2)]);
}

#[test]
fn a_half_written_picture_is_tried_again_until_it_is_whole() {
    for (name, whole) in [("1.png", png_with(&[&ours(1)], 640, 480)), ("1.jpg", jpeg_with(&[&ours(1)]))] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, &whole[..whole.len() / 3]).unwrap();
        let mut source = Pictures::new(file.clone(), 50.0, false);
        // Not yet: neither a frame nor a fault nor the end.
        let first = source.next(Duration::ZERO);
        assert!(matches!(first, Next::Nothing), "{name}: {first:?}");
        std::fs::write(&file, &whole).unwrap();
        let luma = next_frame(&mut source).luma().unwrap();
        assert_eq!(scanner::decode::main_stage(&luma), [ours(1)], "{name}");
        assert!(matches!(next(&mut source), Next::End));
    }
}

#[test]
fn a_picture_that_never_becomes_one_is_left_out_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("0.png"), b"rubbish");
    put(&folder.path().join("1.jpg"), &jpeg_with(&[&ours(1)]));
    let (scanner, said) = start(folder.path(), false);
    scanner.wait();
    said.wait_for_codes(&[&ours(1)]);
    assert_eq!(said.states(), [Live]);

    std::fs::remove_file(folder.path().join("1.jpg")).unwrap();
    let (_scanner, said) = start(folder.path(), true);
    said.wait_for_states(&[BrokenFrames]);
    put(&folder.path().join("2.jpg"), &jpeg_with(&[&ours(2)]));
    said.wait_for_states(&[BrokenFrames, Live]);
    said.wait_for_codes(&[&ours(2)]);
}

#[test]
fn large_pictures_are_made_smaller_and_absurd_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.png");
    put(&file, &png_with(&[&ours(1)], 4000, 3000));
    let pixels = next_frame(&mut Pictures::new(file.clone(), 50.0, false));
    let luma = pixels.luma().unwrap();
    assert!(luma.width() * luma.height() <= 2_000_000, "{luma:?}");
    assert_eq!(scanner::decode::main_stage(&luma), [ours(1)]);
    let preview = scanner::jpeg::luma(&pixels.preview().unwrap()).unwrap();
    assert!(preview.width() <= 640, "{preview:?}");

    put(&file, &png_with(&[], 8000, 7000));
    let said = next(&mut Pictures::new(file, 50.0, false));
    assert!(matches!(said, Next::State(SourceState::BrokenFrames)), "{said:?}");
}

#[test]
fn every_colour_type_is_read_and_transparent_is_white() {
    let gray = image::GrayImage::from_raw(640, 480, frame_with(&[&ours(1)], 640, 480)).unwrap();
    let gray = image::DynamicImage::ImageLuma8(gray);
    // Black modules on nothing at all: without a background everything would be black.
    let transparent = {
        let mut picture = gray.to_rgba8();
        for pixel in picture.pixels_mut() {
            pixel.0 = if pixel.0[0] > 128 { [0, 0, 0, 0] } else { [0, 0, 0, 255] };
        }
        image::DynamicImage::ImageRgba8(picture)
    };
    let pictures = [
        gray.clone(),
        gray.to_luma_alpha8().into(),
        gray.to_rgb8().into(),
        gray.to_rgba8().into(),
        gray.to_luma16().into(),
        gray.to_rgb16().into(),
        transparent,
    ];
    let folder = tempfile::tempdir().unwrap();
    for (i, picture) in pictures.iter().enumerate() {
        let file = folder.path().join(format!("{i}.png"));
        picture.save(&file).unwrap();
        let color = picture.color();
        let luma = next_frame(&mut Pictures::new(file.clone(), 50.0, false)).luma().unwrap();
        assert_eq!(scanner::decode::main_stage(&luma), [ours(1)], "live, {color:?}");
        let luma = scanner::frames::pictures::read_luma(&file).unwrap();
        assert_eq!(scanner::decode::main_stage(&luma), [ours(1)], "still, {color:?}");
    }
}

#[test]
fn the_rate_is_kept_and_absurd_rates_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("1.jpg"), &jpeg_with(&[]));
    let start = Instant::now();
    let mut source = Pictures::new(folder.path().to_owned(), 10.0, true);
    for _ in 0..4 {
        next_frame(&mut source);
    }
    assert!(start.elapsed() >= Duration::from_millis(300), "four pictures at ten a second have three pauses");
    for fps in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e30] {
        next_frame(&mut Pictures::new(folder.path().to_owned(), fps, true));
    }
}
