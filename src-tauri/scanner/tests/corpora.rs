//! The shared pictures: real photographs, rendered webcam frames, frames without a code, and frames made to hurt.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use scanner::decode;
use scanner::frames::pictures;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PHOTOGRAPHS: [&str; 7] =
    ["zxing-qr1", "zxing-qr3", "zxing-qr5", "zxing-qr6", "zxingcpp-qr1", "zxingcpp-qr3", "zxingcpp-qr5"];

/// The corpora, or a message that the test has nothing to look at.
macro_rules! corpora_or_skip {
    () => {
        match common::corpora() {
            Some(root) => root,
            None => {
                eprintln!("SKIPPED: the shared corpora are not next to this repository (../shared/corpora)");
                return;
            }
        }
    };
}

fn truth(folder: &Path) -> BTreeMap<String, String> {
    let lines = std::fs::read_to_string(folder.join("truth.tsv")).unwrap();
    lines
        .lines()
        .map(|line| {
            let (name, text) = line.split_once('\t').unwrap();
            let text = if text.starts_with('"') { serde_json::from_str(text).unwrap() } else { text.to_owned() };
            (name.to_owned(), text)
        })
        .collect()
}

/// What is read of each picture of a folder, by file name; on both processors.
fn read(folder: &Path, how: fn(&scanner::Luma) -> Vec<String>) -> BTreeMap<String, Vec<String>> {
    let files = pictures::list(folder).unwrap();
    assert!(!files.is_empty(), "{}", folder.display());
    let read_some = |files: &[PathBuf]| -> Vec<(String, Vec<String>)> {
        files
            .iter()
            .map(|file| {
                let luma = pictures::read_luma(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                (file.file_name().unwrap().to_str().unwrap().to_owned(), how(&luma))
            })
            .collect()
    };
    let (left, right) = files.split_at(files.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| read_some(right));
        let mut all = read_some(left);
        all.extend(other.join().unwrap());
        all.into_iter().collect()
    })
}

#[test]
fn every_photograph_is_read_and_nothing_read_is_wrong() {
    let root = corpora_or_skip!();
    for folder in PHOTOGRAPHS {
        let folder = root.join(folder);
        let truth = truth(&folder);
        let texts = read(&folder, decode::still);
        assert_eq!(texts.len(), truth.len());
        for (file, texts) in texts {
            assert_eq!(texts, [truth[&file].clone()], "{}/{file}", folder.display());
        }
    }
}

#[test]
fn the_live_stages_alone_read_every_photograph_as_well() {
    let root = corpora_or_skip!();
    for folder in PHOTOGRAPHS {
        let folder = root.join(folder);
        let truth = truth(&folder);
        for (file, texts) in read(&folder, decode::main_stage) {
            assert_eq!(texts, [truth[&file].clone()], "{}/{file}", folder.display());
        }
    }
}

#[test]
fn at_least_82_percent_of_the_rendered_frames_are_read_and_nothing_read_is_wrong() {
    let root = corpora_or_skip!();
    let folder = root.join("synth");
    let truth = truth(&folder);
    let texts = read(&folder, decode::still);
    let mut missed = Vec::new();
    for (file, texts) in &texts {
        match texts.as_slice() {
            [] => missed.push(file),
            [text] => assert_eq!(text, &truth[file], "{file}"),
            several => panic!("{file}: {} texts where there is one", several.len()),
        }
    }
    let read = texts.len() - missed.len();
    println!("{read} of {}; missed: {missed:?}", texts.len());
    assert!(read * 100 >= texts.len() * 82, "only {read} of {}; missed: {missed:?}", texts.len());
}

#[test]
fn nothing_is_read_where_there_is_nothing() {
    let root = corpora_or_skip!();
    for (file, texts) in read(&root.join("negative"), decode::still) {
        assert_eq!(texts, [""; 0], "{file}");
    }
}

#[test]
fn hostile_pictures_are_survived_and_codes_between_them_are_still_read() {
    let root = corpora_or_skip!();
    let texts = read(&root.join("hostile"), decode::still);
    for (file, texts) in &texts {
        match file.as_str() {
            "sheet15.png" => {
                assert_eq!(texts.len(), 15, "{file}");
                assert!(texts.iter().all(|text| text.contains("TEAM_BOOKING_VERIFY")), "{file}");
            }
            "7.png" => {}
            _ => assert_eq!(*texts, [""; 0], "{file}: finder patterns alone are no code"),
        }
    }
    // The picture that makes rqrr panic: caught in the stage, and the next picture is read as ever.
    let folder = root.join("hostile");
    let panics = pictures::read_luma(&folder.join("7.png")).unwrap();
    decode::rqrr_alone(&panics);
    decode::rescue_stage(&panics, decode::LIVE_BUDGET);
    let sheet = pictures::read_luma(&folder.join("sheet15.png")).unwrap();
    assert_eq!(decode::main_stage(&sheet).len(), 15);
}
