//! JPEG as cameras send it: more buffer than picture, Huffman tables left out, damaged on the way.

use crate::{Luma, guard};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// No camera frame has a longer side than this; a damaged header must not make us reserve gigabytes.
const MAX_SIDE: usize = 8192;

/// A frame that cannot be read as JPEG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the frame is not a readable JPEG")]
pub struct Broken;

/// The brightness of a JPEG; colours are not decoded at all.
///
/// # Errors
/// [`Broken`] for everything that does not hold a picture.
pub fn luma(jpeg: &[u8]) -> Result<Luma, Broken> {
    // The second try is for cameras that leave the Huffman tables out.
    decode(jpeg).or_else(|| decode(&complete(jpeg)?)).ok_or(Broken)
}

fn decode(jpeg: &[u8]) -> Option<Luma> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE)
        .jpeg_set_out_colorspace(ColorSpace::Luma);
    // A decoder fed with noise is the one place where a panic in a library is to be expected.
    guard::catch("zune-jpeg", || {
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
        let pixels = decoder.decode().ok()?;
        let info = decoder.info()?;
        Luma::new(pixels, usize::from(info.width), usize::from(info.height))
    })
    .flatten()
}

/// The JPEG as any viewer can read it: without what stands behind its end, with the standard Huffman tables where the
/// camera left them out (as MJPEG may). `None` when there is no whole picture.
pub fn complete(bytes: &[u8]) -> Option<Vec<u8>> {
    let start = bytes.windows(2).position(|pair| pair == [0xff, 0xd8])?;
    let bytes = &bytes[start..];
    let (mut at, mut tables, mut scan_at) = (2, false, None);
    let end = loop {
        let marker = *bytes.get(at + 1)?;
        if bytes[at] != 0xff {
            return None;
        }
        match marker {
            0xff => at += 1, // fill byte
            0xd9 => break at + 2,
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => {
                let len = usize::from(u16::from_be_bytes([*bytes.get(at + 2)?, *bytes.get(at + 3)?]));
                tables |= marker == 0xc4;
                let next = at + 2 + len.max(2);
                if marker == 0xda {
                    scan_at.get_or_insert(at);
                    // Inside a scan 0xff is data when 0 follows, a restart mark when 0xd0 to 0xd7 do.
                    let rest = bytes.get(next..)?;
                    at = next
                        + rest
                            .windows(2)
                            .position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7 | 0xff))?;
                } else {
                    at = next;
                }
            }
        }
    };
    let scan_at = scan_at?;
    let mut whole = Vec::with_capacity(end + if tables { 0 } else { STANDARD_TABLES_LEN });
    whole.extend_from_slice(&bytes[..scan_at]);
    if !tables {
        whole.extend(standard_tables());
    }
    whole.extend_from_slice(&bytes[scan_at..end]);
    Some(whole)
}

const STANDARD_TABLES_LEN: usize = 2 + 2 + 2 * (17 + 12) + 2 * (17 + 162);

/// The DHT segment of ITU T.81, annex K.3, that MJPEG takes for granted.
fn standard_tables() -> Vec<u8> {
    const DC_LUMA: [u8; 16] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
    const DC_CHROMA: [u8; 16] = [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0];
    const DC_VALUES: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
    const AC_LUMA: [u8; 16] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d];
    const AC_CHROMA: [u8; 16] = [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77];
    #[rustfmt::skip]
    const AC_LUMA_VALUES: [u8; 162] = [
        0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
        0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72,
        0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37,
        0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59,
        0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83,
        0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3,
        0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
        0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2,
        0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
    ];
    #[rustfmt::skip]
    const AC_CHROMA_VALUES: [u8; 162] = [
        0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22,
        0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1,
        0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36,
        0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
        0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a,
        0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a,
        0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba,
        0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda,
        0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
    ];
    let mut segment = vec![0xff, 0xc4];
    segment.extend(((STANDARD_TABLES_LEN - 2) as u16).to_be_bytes());
    let tables: [(u8, &[u8; 16], &[u8]); 4] = [
        (0x00, &DC_LUMA, &DC_VALUES),
        (0x10, &AC_LUMA, &AC_LUMA_VALUES),
        (0x01, &DC_CHROMA, &DC_VALUES),
        (0x11, &AC_CHROMA, &AC_CHROMA_VALUES),
    ];
    for (id, counts, values) in tables {
        segment.push(id);
        segment.extend_from_slice(counts);
        segment.extend_from_slice(values);
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A brightness ramp, by a baseline encoder with standard tables; noise of its own in the lowest bits.
    fn picture() -> (Vec<u8>, Vec<u8>) {
        let gray: Vec<u8> = (0..64 * 48).map(|i| ((i % 64) * 3 + i / 64) as u8).collect();
        let mut jpeg = Vec::new();
        jpeg_encoder::Encoder::new(&mut jpeg, 95).encode(&gray, 64, 48, jpeg_encoder::ColorType::Luma).unwrap();
        (gray, jpeg)
    }

    fn segments_without(jpeg: &[u8], marker: u8) -> Vec<u8> {
        let mut kept = jpeg[..2].to_vec();
        let mut at = 2;
        while jpeg[at + 1] != 0xda {
            let next = at + 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
            if jpeg[at + 1] != marker {
                kept.extend_from_slice(&jpeg[at..next]);
            }
            at = next;
        }
        kept.extend_from_slice(&jpeg[at..]);
        kept
    }

    fn assert_like(luma: &Luma, gray: &[u8]) {
        let off = luma.pixels().iter().zip(gray).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(luma.pixels().len() == gray.len() && off < Some(12), "off by {off:?}");
    }

    #[test]
    fn brightness_of_grey_and_of_colour_jpegs() {
        let (gray, jpeg) = picture();
        assert_like(&luma(&jpeg).unwrap(), &gray);
        let rgb: Vec<u8> = gray.iter().flat_map(|&y| [y, y, y]).collect();
        let mut color = Vec::new();
        jpeg_encoder::Encoder::new(&mut color, 95).encode(&rgb, 64, 48, jpeg_encoder::ColorType::Rgb).unwrap();
        assert_like(&luma(&color).unwrap(), &gray);
    }

    #[test]
    fn bytes_behind_the_end_do_no_harm_and_are_cut_off() {
        let (gray, jpeg) = picture();
        let mut buffer = jpeg.clone();
        buffer.extend([0; 500]);
        // What an older, longer frame left in the buffer.
        buffer.extend_from_slice(&jpeg[jpeg.len() / 2..]);
        assert_like(&luma(&buffer).unwrap(), &gray);
        assert_eq!(complete(&buffer), Some(jpeg));
    }

    #[test]
    fn huffman_tables_that_a_camera_leaves_out_are_put_back() {
        let (gray, _) = picture();
        let rgb: Vec<u8> = gray.iter().flat_map(|&y| [y, 255 - y, y / 2]).collect();
        let mut jpeg = Vec::new();
        jpeg_encoder::Encoder::new(&mut jpeg, 95).encode(&rgb, 64, 48, jpeg_encoder::ColorType::Rgb).unwrap();
        let bare = segments_without(&jpeg, 0xc4);
        assert!(bare.len() < jpeg.len());
        let whole = complete(&bare).unwrap();
        assert_eq!(
            image::load_from_memory(&whole).unwrap().to_rgb8(),
            image::load_from_memory(&jpeg).unwrap().to_rgb8(),
            "the tables are those of the standard"
        );
        assert_eq!(luma(&bare).unwrap(), luma(&jpeg).unwrap(), "and decoding does not need them");
    }

    #[test]
    fn a_picture_without_its_end_is_not_whole() {
        let (_, jpeg) = picture();
        assert!((0..jpeg.len()).all(|len| complete(&jpeg[..len]).is_none()));
        assert_eq!(complete(&jpeg).as_deref(), Some(jpeg.as_slice()));
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_picture_but_never_a_panic() {
        let (_, jpeg) = picture();
        for bad in [&b""[..], &[0xff, 0xd8], &[0; 3000], &jpeg[..jpeg.len() / 8]] {
            assert_eq!(luma(bad), Err(Broken));
        }
        let mut noise = 1u32;
        for round in 0..500 {
            let mut bytes = jpeg.clone();
            for _ in 0..=round % 20 {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (noise >> 8) as usize % bytes.len();
                bytes[at] = noise as u8;
            }
            let _ = luma(&bytes);
            let _ = complete(&bytes);
        }
    }

    #[test]
    fn a_header_that_promises_gigabytes_is_refused() {
        let (_, mut jpeg) = picture();
        let size = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
        jpeg[size..size + 4].copy_from_slice(&[0xff; 4]);
        assert_eq!(luma(&jpeg), Err(Broken));
    }
}
