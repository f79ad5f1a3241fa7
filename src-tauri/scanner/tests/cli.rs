//! The command line, by its real binary: output, exit status, what it says when something is wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{frame_with, jpeg_with, ours};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn scanner(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scanner")).args(arguments).env_remove("RUST_LOG").output().unwrap()
}

fn png(path: &Path, texts: &[&str]) {
    let (width, height) = (1280, 720);
    image::GrayImage::from_raw(width, height, frame_with(texts, width as usize, height as usize))
        .unwrap()
        .save(path)
        .unwrap();
}

fn lines(output: &Output) -> Vec<serde_json::Value> {
    output.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn one_json_line_a_code_with_the_numbers_of_ours_and_only_the_text_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.png");
    png(&file, &["TBV:bk7:483921", "https://example.org/menu"]);
    let output = scanner(&[file.to_str().unwrap()]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let mut lines = lines(&output);
    lines.sort_by_key(|line| line["text"].as_str().unwrap().to_owned());
    let file = file.to_str().unwrap();
    assert_eq!(
        lines,
        [
            serde_json::json!({"file": file, "text": "TBV:bk7:483921", "orderNo": "BK7", "verifyCode": "483921"}),
            serde_json::json!({"file": file, "text": "https://example.org/menu"}),
        ]
    );
}

#[test]
fn half_a_text_does_not_pass_for_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nul.png");
    png(&file, &["TBV:BK7:483921\0 and more"]);
    let output = scanner(&[file.to_str().unwrap()]);
    let lines = lines(&output);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["text"], lines[0].get("orderNo")), (&"TBV:BK7:483921\0 and more".into(), None));
}

#[test]
fn a_folder_is_read_in_name_order_and_a_picture_without_a_code_is_exit_status_1() {
    let folder = tempfile::tempdir().unwrap();
    png(&folder.path().join("b.png"), &[&ours(2)]);
    std::fs::write(folder.path().join("a.JPG"), jpeg_with(&[&ours(1)])).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no picture").unwrap();
    let path = folder.path().to_str().unwrap();
    let output = scanner(&[path]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let texts: Vec<_> = lines(&output).iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(texts, [ours(1), ours(2)]);

    png(&folder.path().join("c.png"), &[]);
    let output = scanner(&[path]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output).len(), 2, "the others are read all the same");
}

#[test]
fn what_cannot_be_read_is_named_on_standard_error_and_does_not_stop_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("broken.png"), b"\x89PNG\r\n\x1a\nrubbish").unwrap();
    std::fs::write(at("text.jpg"), b"hello").unwrap();
    std::fs::create_dir(at("empty")).unwrap();
    png(Path::new(&at("good.png")), &[&ours(3)]);
    for (bad, word) in [
        (at("broken.png"), "not a readable"),
        (at("text.jpg"), "not a readable"),
        (at("missing.png"), "No such file"),
        (at("empty"), "no JPEG, PNG or WebP picture"),
    ] {
        let output = scanner(&[&bad, &at("good.png")]);
        assert_eq!(output.status.code(), Some(1), "{bad}");
        assert!(stderr(&output).contains(&bad) && stderr(&output).contains(word), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        assert_eq!(lines(&output).len(), 1, "{bad}: the good picture is read all the same");
    }
}

#[test]
fn a_picture_of_absurd_size_is_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bomb.png");
    png(&file, &[]);
    let mut bytes = std::fs::read(&file).unwrap();
    // Width and height in the header, and the header's checksum with them.
    bytes[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    let checksum = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    std::fs::write(&file, bytes).unwrap();
    let output = scanner(&[file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("65536x65536 pixels are too many"), "{}", stderr(&output));
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut crc, byte| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
        crc
    })
}

#[test]
fn wrong_usage_is_exit_status_2_and_says_how() {
    for arguments in [&[][..], &["--camera", "0", "x.png"], &["--camera", "x"], &["--bench"], &["--nonsense", "x"]] {
        let output = scanner(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.starts_with("error: ") && said.contains("--help"), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    let help = scanner(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("--camera"));
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jpg");
    std::fs::write(&file, jpeg_with(&[&ours(1)])).unwrap();
    // The same picture very often: without the pipe's end it would run for minutes.
    let paths = std::iter::repeat_n(&file, 20_000);
    let mut child = Command::new(env!("CARGO_BIN_EXE_scanner"))
        .args(paths)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with('{'));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn a_camera_that_is_not_there_is_said_in_words_and_waited_for() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scanner"))
        .args(["--camera", "4000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said: Vec<String> = BufReader::new(child.stderr.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(
        said,
        [
            "scanner: camera 4000: being opened",
            "scanner: camera 4000: there is no such camera; plug it in, it will be found"
        ]
    );
    assert!(child.try_wait().unwrap().is_none(), "it waits for the camera");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_benchmark_counts_correct_wrong_and_missed() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    png(&folder.join("right.png"), &[&ours(1)]);
    png(&folder.join("other.png"), &[&ours(2)]);
    png(&folder.join("blank.png"), &[]);
    let truth = format!("right.png\t{}\nother.png\t\"something else\"\nblank.png\t{}\n", ours(1), ours(4));
    std::fs::write(folder.join("truth.tsv"), truth).unwrap();
    let nothing = root.path().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    png(&nothing.join("blank.png"), &[]);
    png(&nothing.join("code.png"), &[&ours(5)]);
    let output = scanner(&["--bench", folder.to_str().unwrap(), nothing.to_str().unwrap()]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let table = String::from_utf8(output.stdout).unwrap();
    let row = |folder: &str, decoder: &str| -> Vec<String> {
        let row = table.lines().find(|line| line.starts_with(folder) && line.contains(decoder));
        let row = row.unwrap_or_else(|| panic!("no {folder} {decoder} in {table}"));
        let after = row.split(decoder).nth(1).unwrap();
        after.split_whitespace().take(4).map(str::to_owned).collect()
    };
    for decoder in ["live", "still", "rqrr alone"] {
        assert_eq!(row("mine", decoder), ["3", "1", "1", "2"], "{decoder}");
        assert_eq!(row("nothing", decoder), ["2", "1", "1", "-"], "{decoder}");
        assert_eq!(row("empty 1280x720", decoder), ["10", "10", "0", "-"], "{decoder}");
    }

    std::fs::write(folder.join("truth.tsv"), "no tab\n").unwrap();
    let output = scanner(&["--bench", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("truth.tsv: line 1: no tab"), "{}", stderr(&output));
}
